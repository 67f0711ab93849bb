package supervisor

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
)

// TestMetacontrollersCRDsAreEnough: every kind that Metacontroller has is required, and no other.
func TestMetacontrollersCRDsAreEnough(t *testing.T) {
	for _, k := range hook.Descriptors() {
		known := k.Declared == v1alpha1.CompositeControllerKind || k.Declared == v1alpha1.DecoratorControllerKind
		if k.Optional == known {
			t.Errorf("%s: Optional is %v, want %v", k.Declared, k.Optional, !known)
		}
	}
}

// run runs the supervisor until the test ends or stop is called.
func (w *fixture) run() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	}
}

// TestKindThatIsInstalledLater: the engine is ready without the CRD of an optional kind, runs the
// controllers of the other kinds, and those of this kind as soon as the CRD is installed.
func TestKindThatIsInstalledLater(t *testing.T) {
	w := newFixture(t)
	w.server.Refuse(mapKind, http.StatusNotFound)
	w.put(composites, "hello", webSpec)
	stop := w.run()
	defer stop()
	w.await("readiness", w.Ready)
	w.await("composite controller", func() bool { return w.starts() == 1 })
	w.server.Refuse(mapKind, 0)
	w.put(mapKind, "snapshots", mapSpec)
	*w.served = append(*w.served, mapKind)
	w.refresh()
	w.await("map controller, which writes the status of the same parents", func() bool {
		return w.starts() == 2 && w.condition().Reason == v1alpha1.ReasonParentConflict
	})
	*w.served = append(*w.served, widgets)
	w.refresh()
	w.await("restart with an input that is served", func() bool { return w.starts() == 3 })
}

// TestKindThatMayNotBeWatched: the rights on an optional kind are missing at first. The other kinds
// need not wait.
func TestKindThatMayNotBeWatched(t *testing.T) {
	w := newFixture(t)
	*w.served = append(*w.served, mapKind, widgets)
	w.refresh()
	w.server.Refuse(mapKind, http.StatusForbidden)
	w.put(composites, "hello", webSpec)
	w.put(mapKind, "snapshots", mapSpec)
	stop := w.run()
	defer stop()
	w.await("readiness", w.Ready)
	w.await("composite controller", func() bool { return w.starts() == 1 })
	w.server.Refuse(mapKind, 0)
	w.await("map controller", func() bool {
		w.clock.Step(time.Second)
		return w.starts() == 2
	})
}

// TestControllersOfAKindThatIsGone: without the CRD there are no declaring objects, so that the
// finalizers of their parents are removed. If that is not known, nothing is done.
func TestControllersOfAKindThatIsGone(t *testing.T) {
	w := newFixture(t)
	w.reader = cache.Held{}
	key := object.Ref{GVK: mapKind.GVK, Name: "snapshots"}
	w.known[key] = &parents{FinalizerRecord: FinalizerRecord{Finalizer: "metacontroller.io/mapcontroller-snapshots"}}
	w.look(key)
	if w.known[key] != nil {
		t.Error("the parents of a controller that is gone are still known")
	}
	*w.served = append(*w.served, mapKind)
	w.refresh()
	if _, err := w.Reconcile(t.Context(), queue.Item[object.Ref]{Key: key}); err == nil {
		t.Error("Reconcile of an object that is not known succeeds, want an error")
	}
}
