package supervisor

import (
	"errors"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/klog/v2"
)

// TestUnknownDeclaringObjectsAreNotGone: a controller keeps running, and keeps its finalizers, if
// its declaring object cannot be read.
func TestUnknownDeclaringObjectsAreNotGone(t *testing.T) {
	for _, state := range []view.State{view.Unwatched, view.Filling, view.Stale} {
		w := newFixture(t)
		key := w.declare("hello", webSpec)
		w.look(key)
		broken := viewtest.NewReader()
		for _, r := range kinds {
			broken.Break(r, state)
		}
		w.reader = broken
		var unknown *view.Error
		if _, err := w.Reconcile(t.Context(), queue.Item[object.Ref]{Key: key}); !errors.As(err,
			&unknown) || unknown.State != state {
			t.Errorf("%s: Reconcile = %v, want its error", state, err)
		}
		if w.running[key] == nil {
			t.Errorf("%s: the controller was stopped", state)
		}
		if err := w.first(); !errors.As(err, &unknown) {
			t.Errorf("%s: first = %v, want its error", state, err)
		}
		if err := w.rediscovered(t.Context(), func(object.Ref, queue.Priority, queue.Cause) {}); !errors.As(err, &unknown) {
			t.Errorf("%s: rediscovered = %v, want its error", state, err)
		}
		w.stopAll(nil)
	}
}

// TestTriggersOfUnknownParents: one with a waiting caller fails; one in the background, such as
// of a new build, is repeated when the parents are known.
func TestTriggersOfUnknownParents(t *testing.T) {
	asks := newTrigger(&config{declared: &declared{}, object: decoded(t)}, klog.Background())
	stale := &view.Error{Resource: webs, State: view.Stale}
	if err := asks.miss(hook.Trigger{Reason: "a hook asks"}, stale); !errors.Is(err, stale) || asks.missed != nil {
		t.Errorf("a hook's own trigger: %v, want the error", err)
	}
	if err := asks.miss(
		hook.Trigger{LowPriority: true, Invalidate: true, Parents: []hook.ParentName{{Name: "web"}}},
		stale,
	); err != nil {
		t.Errorf("a new build: %v, want it kept", err)
	}
	if err := asks.miss(hook.Trigger{LowPriority: true},
		stale); err != nil || asks.missed == nil || !asks.missed.Invalidate ||
		asks.missed.Parents != nil {
		t.Errorf("two of them: %+v, %v, want one about all parents", asks.missed, err)
	}
	if err := asks.miss(hook.Trigger{}, &view.Error{Resource: webs, State: view.Unwatched}); err != nil {
		t.Errorf("before the first list: %v, want nothing, because that brings all parents", err)
	}
	asks.run.Store(loop.New[hook.Key]("test", loop.Config{}))
	asks.invalidate = func(hook.Key) {}
	asks.replay()
	if asks.missed != nil {
		t.Error("what was missed is not taken up")
	}
}

func decoded(t *testing.T) *object.Object {
	t.Helper()
	o, err := object.Decode(
		[]byte(`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"hello"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}
