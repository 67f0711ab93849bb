package integration

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// slowHook answers a page for each parent after it is released.
type slowHook struct {
	*kit.Hook
	release chan struct{}

	mu          sync.Mutex // guards asked and gone
	asked, gone int
}

func newSlowHook(k *kit.Kit) *slowHook {
	h := &slowHook{release: make(chan struct{})}
	h.Hook = k.Hook(func(r kit.Request) any {
		h.count(&h.asked)
		select {
		case <-h.release:
		case <-r.Gone:
			h.count(&h.gone)
		}
		return map[string]any{
			"children": []any{configMap("page-"+r.Parent.GetName(), "late")},
			"status":   map[string]any{"late": true},
		}
	})
	return h
}

func (h *slowHook) count(n *int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*n++
}

// reaches waits until a count has reached a number.
func (h *slowHook) reaches(k *kit.Kit, what string, n *int, want int) {
	k.Helper()
	k.Eventually(what, func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if *n < want {
			return fmt.Errorf("%d, want %d", *n, want)
		}
		return nil
	})
}

// leader runs the leading engine with three syncs that wait for their hook. Its grace period is ten
// minutes.
func leader(k *kit.Kit) (*serve.Engine, *slowHook) {
	k.Helper()
	k.CRD("Web", "Namespaced")
	hook := newSlowHook(k)
	engine, labels := ownEngine(k, "--leader-election", "--leader-election-namespace="+k.Namespace,
		"--leader-election-id="+k.Name, "--shutdown-grace-period=10m")
	k.Run(
		kit.Composite{
			Parent:   "webs",
			Children: []string{"v1/configmaps InPlace"},
			Sync:     hook.URL,
			Timeout:  "10m",
			Labels:   labels,
		},
	)
	for _, name := range []string{"a", "b", "c"} {
		k.Apply(parent(name))
	}
	hook.reaches(k, "syncs that wait for their hook", &hook.asked, 3)
	return engine, hook
}

const leaseKind = "coordination.k8s.io/v1/Lease"

// seize writes another holder into the lease.
func seize(k *kit.Kit) {
	k.Helper()
	now := metav1.NowMicro().UTC().Format(metav1.RFC3339Micro)
	k.Patch(leaseKind, k.Name,
		"spec: {holderIdentity: somebody-else, leaseDurationSeconds: 600, renewTime: '"+now+"', acquireTime: '"+now+"'}")
}

// endsWithoutAWrite waits until an engine that has lost its lease has exited with a failure, and
// checks that it has written nothing.
func endsWithoutAWrite(k *kit.Kit, engine *serve.Engine, since cluster.Mark) {
	k.Helper()
	k.Eventually("the engine has ended", func() error {
		select {
		case <-engine.Done():
			return nil
		default:
			return errors.New("it runs")
		}
	})
	if engine.Err() == nil || !strings.Contains(engine.Output(), "the leader lease was lost") {
		k.Errorf("it ends with %v, want a failure that names the lease", engine.Err())
	}
	for _, w := range k.Writes(since) {
		if w.Resource != "leases" && w.Resource != "events" {
			k.Errorf("a write of the old leader: %s", w)
		}
	}
}

// TestLeaderThatLosesItsLeaseWritesNothing changes the holder of the lease during syncs. They are
// cancelled immediately, and the hook's later answers are not written.
func TestLeaderThatLosesItsLeaseWritesNothing(t *testing.T) {
	k := start(t)
	engine, hook := leader(k)
	mark := k.Mark()
	seize(k)
	hook.reaches(k, "questions that were given up", &hook.gone, 3)
	close(hook.release)
	endsWithoutAWrite(k, engine, mark)
}

// TestLeaderThatWasPausedWritesNothing pauses a leader until its lease has expired and belongs to
// another one. By the time it continues, the hook has answered.
func TestLeaderThatWasPausedWritesNothing(t *testing.T) {
	k := start(t)
	engine, hook := leader(k)
	if err := engine.Pause(); err != nil {
		t.Fatal(err)
	}
	mark := k.Mark()
	k.Eventually("the lease has run out", func() error {
		spec, _, _ := unstructured.NestedMap(k.Get(leaseKind, k.Name).Object, "spec")
		renewed, err := time.Parse(metav1.RFC3339Micro, fmt.Sprint(spec["renewTime"]))
		if err != nil {
			return err
		}
		if age := time.Since(renewed); age < 15*time.Second {
			return fmt.Errorf("it was renewed %s ago", age)
		}
		return nil
	})
	seize(k)
	close(hook.release)
	if err := engine.Resume(); err != nil {
		t.Fatal(err)
	}
	endsWithoutAWrite(k, engine, mark)
}
