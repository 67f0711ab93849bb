package integration

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/faultproxy"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/types"
)

// busyParents is the number of parents of TestRestartBesideABusyServer; HOOKLOOP_BUSY_PARENTS
// overrides it.
const busyParents = 40

// engineThroughProxy runs an engine that reaches the API server through a proxy.
func engineThroughProxy(k *kit.Kit, flags ...string) (*serve.Engine, *faultproxy.Proxy, map[string]any) {
	k.Helper()
	proxy, err := faultproxy.Start(k.Cluster.Admin(), 1)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			k.Error(err)
		}
	})
	file := filepath.Join(k.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(proxy.Config(), file); err != nil {
		k.Fatal(err)
	}
	e, err := serve.Start(k.Context(), serve.Config{
		Kubeconfig: file,
		Flags:      append([]string{"--target-label-selector=" + own + ",test=" + k.Name, "--client-go-qps=-1"}, flags...),
	})
	if e != nil {
		k.Own(e.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	return e, proxy, map[string]any{"engine": "own", "test": k.Name}
}

// TestRestartBesideABusyServer restarts an engine while the API server fails more than a fifth of
// its requests. Each parent has a healthy child that the server stores in another notation (1000m
// is 1), so that the new engine needs a dry run to recognize it. No child is deleted.
func TestRestartBesideABusyServer(t *testing.T) {
	n := busyParents
	if text := os.Getenv("HOOKLOOP_BUSY_PARENTS"); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
	}
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, proxy, labels := engineThroughProxy(k)
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/limitranges Recreate"}, Sync: mirror(t), Labels: labels})
	for i := range n {
		k.Apply(parent(fmt.Sprint("web", i), fmt.Sprintf(
			"{apiVersion: v1, kind: LimitRange, metadata: {name: web%d}, spec: {limits: [{type: Container, "+
				"max: {cpu: 1000m}}]}}",
			i,
		)))
	}
	uids := func() map[string]types.UID {
		all := map[string]types.UID{}
		for _, o := range k.List("v1/LimitRange") {
			all[o.GetName()] = o.GetUID()
		}
		return all
	}
	k.Eventually("every parent has its child", func() error {
		if have := len(uids()); have < n {
			return fmt.Errorf("%d of %d", have, n)
		}
		return nil
	})
	k.Settled(settled)
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	before := uids()
	mark := k.Mark()
	proxy.Take()
	proxy.Set(faultproxy.Busy()...)
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	k.Eventually("the engine has decided about every child", func() error {
		if known := decided(k, mark); known < n {
			return fmt.Errorf("about %d of %d", known, n)
		}
		return nil
	})
	count := proxy.Take()
	t.Logf("%d parents: %d requests, failed %v", n, count.Requests, count.Failed)
	for _, code := range []int{http.StatusTooManyRequests, http.StatusConflict, http.StatusInternalServerError} {
		if count.Failed[code] == 0 {
			t.Errorf("no request failed with %d: the test shows nothing", code)
		}
	}
	if after := uids(); !maps.Equal(before, after) {
		t.Errorf("children were recreated: %v, then %v", before, after)
	}
	for _, w := range k.Writes(mark) {
		if w.Resource == "limitranges" {
			t.Errorf("the new engine wrote a child: %s", w)
		}
	}
}

// decided returns the number of children with a dry run or a new UID since a mark.
func decided(k *kit.Kit, since cluster.Mark) int {
	k.Helper()
	all, err := k.Cluster.Writes(since)
	if err != nil {
		k.Fatal(err)
	}
	names := map[string]bool{}
	for _, w := range all {
		if w.Namespace == k.Namespace && w.Resource == "limitranges" && w.Code < 300 && (w.DryRun || w.Verb == "create") {
			names[w.Name] = true
		}
	}
	return len(names)
}
