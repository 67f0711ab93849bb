package integration

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
)

// serveBuild serves a hook with a build id until it is stopped. It answers as many children as it
// gets related objects.
func serveBuild(t *testing.T, build, address string, bare *atomic.Int64) (stop func()) {
	t.Helper()
	sync := func(_ context.Context, r *hook.SyncRequest) (*hook.SyncResponse, error) {
		response := &hook.SyncResponse{Status: map[string]any{"build": build}}
		for _, group := range r.Related {
			for range group.Objects {
				response.Children = append(response.Children, hook.Child{Object: map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "of-" + r.Parent.Name},
				}})
			}
		}
		if len(response.Children) == 0 {
			bare.Add(1)
		}
		return response, nil
	}
	ready := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	go func() {
		ended <- hook.Serve(ctx, hook.ServeOptions{
			Options: hook.Options{BuildID: build}, Listen: address, Listening: func(a net.Addr) { ready <- a },
		}, hook.Composite{Sync: sync})
	}()
	stop = func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		ended <- nil
	}
	t.Cleanup(stop)
	<-ready
	return stop
}

// TestRelatedObjectsDuringARollout replaces a stream hook by another build while CRDs are created.
// The engine asks again for all answers about related objects, and no question lacks an existing
// object.
func TestRelatedObjectsDuringARollout(t *testing.T) {
	const parents = 8
	k := start(t)
	ports, err := cluster.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])}
	var bare atomic.Int64
	stop := serveBuild(t, "one", addresses[0], &bare)
	customize := rules(k)
	k.Object("v1/Secret", "related").Apply()
	run(t, k, kit.Composite{Sync: "stream:ipv4:" + strings.Join(addresses, ","), Customize: customize.URL})
	name := func(n int) string { return fmt.Sprint("web-", n) }
	for n := range parents {
		k.Apply(relating(name(n), "{apiVersion: v1, resource: secrets, names: [related]}"))
	}
	all := func(build string) {
		t.Helper()
		for n := range parents {
			await(k, "Web", name(n), "status.build", build)
		}
	}
	all("one")
	mark := k.Mark()
	k.CRD("Ball", "Namespaced")
	serveBuild(t, "two", addresses[1], &bare)
	stop()
	k.CRD("Cup", "Namespaced")
	all("two")
	if n := bare.Load(); n != 0 {
		t.Errorf("the hooks were shown no related object %d times, though there is one", n)
	}
	for n := range parents {
		if asked := customize.Asked(name(n)); asked < 2 {
			t.Errorf("the customize hook was asked %d times about %s, want again for the new build", asked, name(n))
		}
	}
	for _, write := range k.Writes(mark) {
		if write.Verb == "delete" && write.Resource == "configmaps" {
			t.Errorf("unexpected write: %s", write)
		}
	}
}
