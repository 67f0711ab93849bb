package integration

import (
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/faultproxy"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/lagproxy"
	"github.com/hookloop/hookloop/test/serve"
)

// observedReplica is a replica between which and the API server requests are noted, and the events
// of watches can be held back.
type observedReplica struct {
	k          *kit.Kit
	kubeconfig string
	lag        *lagproxy.Proxy

	mu       sync.Mutex // guards requests
	requests []string   // "GET /path?query"
}

func observeReplica(k *kit.Kit) *observedReplica {
	k.Helper()
	r := &observedReplica{k: k, kubeconfig: filepath.Join(k.TempDir(), "standby.kubeconfig")}
	var err error
	r.lag, err = lagproxy.Start(k.Cluster.Admin())
	if err != nil {
		k.Fatal(err)
	}
	notes, err := faultproxy.Start(r.lag.Config(), 1)
	if err != nil {
		k.Fatal(err)
	}
	notes.Set(faultproxy.Fault{Matches: r.note})
	k.Cleanup(func() {
		if err := errors.Join(notes.Close(), r.lag.Close()); err != nil {
			k.Error(err)
		}
	})
	if err := cluster.WriteKubeconfig(notes.Config(), r.kubeconfig); err != nil {
		k.Fatal(err)
	}
	return r
}

// note notes a request and lets it pass.
func (r *observedReplica) note(request *http.Request) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, request.Method+" "+request.URL.RequestURI())
	return false
}

// with returns the requests with all of some parts.
func (r *observedReplica) with(parts ...string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
request:
	for _, text := range r.requests {
		for _, part := range parts {
			if !strings.Contains(text, part) {
				continue request
			}
		}
		found = append(found, text)
	}
	return found
}

// writes returns the requests that are no reads.
func (r *observedReplica) writes() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []string
	for _, text := range r.requests {
		if !strings.HasPrefix(text, "GET ") {
			found = append(found, text)
		}
	}
	return found
}

// observedChildren notes of each parent the children that the hook's first question about it had.
type observedChildren struct {
	mu    sync.Mutex // guards first
	first map[string]int
}

func (o *observedChildren) answer(r kit.Request) any {
	o.mu.Lock()
	if _, asked := o.first[r.Parent.GetName()]; !asked {
		o.first[r.Parent.GetName()] = len(r.Children["ConfigMap.v1"])
	}
	o.mu.Unlock()
	return map[string]any{"children": []any{configMap("page-"+r.Parent.GetName(), "text")}}
}

// forget makes the next question about each parent its first.
func (o *observedChildren) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.first = map[string]int{}
}

func (o *observedChildren) of(parent string) (children int, asked bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	children, asked = o.first[parent]
	return children, asked
}

// TestStandbyTakesOver: a replica that waits to lead has watches, and neither writes nor asks a
// hook. Its views lag when the leader dies. When it leads, it syncs nothing before they show the
// dead leader's last writes, and it does not list the parents again.
func TestStandbyTakesOver(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	asked := &observedChildren{first: map[string]int{}}
	hook := k.Hook(asked.answer)
	flags := []string{"--leader-election", "--leader-election-namespace=" + k.Namespace, "--leader-election-id=" + k.Name}
	leader, labels := ownEngine(k, flags...)
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL, Labels: labels})

	replica := observeReplica(k)
	next, err := serve.Start(k.Context(), serve.Config{Kubeconfig: replica.kubeconfig,
		Flags: append([]string{"--target-label-selector=" + own + ",test=" + k.Name}, flags...)})
	if next != nil {
		k.Own(next.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	if text, err := serve.Fetch(k.Context(), "http://"+next.Health+"/readyz"); err != nil ||
		text != "standing by for leadership; caches are filled\n" {
		t.Errorf("/readyz of the standby has %q, %v", text, err)
	}
	k.Apply(parent("early"))
	await(k, "v1/ConfigMap", "page-early", "metadata.name", "page-early")
	waits := regexp.MustCompile(`(?m)^no engine that answered leads, version .*\n\n` +
		`1 replica waits to lead, without controllers; cache .* in \d+ objects; watches work\n$`)
	if text := topOf(k, next); !waits.MatchString(text) {
		t.Errorf("hookloop top of the standby prints\n%swant %s", text, waits)
	}
	shows(k, next, "webs", 1) // its watches have delivered an event, so that their end is not taken for a fault
	replica.lag.Hold("webs", "configmaps")
	k.Apply(parent("late"))
	await(k, "v1/ConfigMap", "page-late", "metadata.name", "page-late")

	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	if got := replica.writes(); len(got) > 0 {
		t.Errorf("writes while another replica led: %v", got)
	}
	before := len(replica.with("/webs?", "sendInitialEvents=true"))
	mark := k.Mark()
	asked.forget()
	k.Patch(leaseKind, k.Name, "spec: {holderIdentity: ''}") // the test need not wait until it has run out
	k.Eventually("the new leader asks for the present state", func() error {
		for _, resource := range []string{"/webs?limit=1", "/configmaps?limit=1"} {
			if len(replica.with(resource)) == 0 {
				return errors.New(resource)
			}
		}
		return nil
	})
	if _, synced := asked.of("early"); synced {
		t.Error("a parent is synced before the views show the present state")
	}
	replica.lag.Release()
	for _, name := range []string{"early", "late"} {
		k.Eventually("the new leader syncs "+name, func() error {
			if children, synced := asked.of(name); !synced || children != 1 {
				return fmt.Errorf("synced: %t, with %d children, want 1", synced, children)
			}
			return nil
		})
	}
	if text := topOf(k, next); !strings.HasPrefix(text, "1 engine, version ") || !strings.Contains(text, k.Name) {
		t.Errorf("hookloop top of the new leader prints\n%swant 1 engine, and its controller", text)
	}
	if got := replica.with("/webs?", "sendInitialEvents=true")[before:]; before == 0 || len(got) > 0 {
		t.Errorf("%d lists of the parents before, want one at least, and lists after the replica has taken over: %v",
			before, got)
	}
	if got := k.ChildWrites(mark); len(got) > 0 {
		t.Errorf("writes of the new leader: %v", got)
	}
}

// topOf returns what hookloop top prints of an engine.
func topOf(k *kit.Kit, e *serve.Engine) string {
	k.Helper()
	out, err := exec.CommandContext(k.Context(), serve.Program("hookloop"), "top", "--once", "--interval", "1s",
		"--metrics-url", "http://"+e.Metrics).Output()
	if err != nil {
		k.Fatal(err)
	}
	return string(out)
}

// shows waits until an engine has a number of objects of a resource in its cache.
func shows(k *kit.Kit, e *serve.Engine, resource string, objects int) {
	k.Helper()
	k.Eventually(fmt.Sprintf("%d %s in the cache", objects, resource), func() error {
		text, err := serve.Fetch(k.Context(), "http://"+e.Metrics+"/metrics")
		if err != nil {
			return err
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "hookloop_cache_objects{") && strings.Contains(line, resource) &&
				strings.HasSuffix(line, fmt.Sprintf(" %d\n", objects)) {
				return nil
			}
		}
		return errors.New("other numbers")
	})
}
