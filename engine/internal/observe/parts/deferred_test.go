package parts

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// TestDeferredPartsFollow has each part of a large parent write an output, and its event come
// immediately: the second syncs begin after all first ones. Each comes once, and a bounded number
// is in the queue.
func TestDeferredPartsFollow(t *testing.T) {
	const n = 3*maxQueued + 7
	tracker, l, _ := newTracker()
	observe(t, tracker, inputs(n), 1)
	var first, second, inQueue []string
	for len(second) < n {
		queued, _ := l.took()
		inQueue = append(inQueue, queued...)
		if len(inQueue) == 0 || len(inQueue) > maxQueued {
			t.Fatalf("after %d and %d syncs %d parts are in the queue, want 1 to %d", len(first), len(second), len(inQueue),
				maxQueued)
		}
		part := inQueue[0]
		inQueue = inQueue[1:]
		if len(first) == n {
			if s, _ := tracker.Summary(shop); s.Settled {
				t.Fatalf("the round has settled after %d of %d second syncs", len(second), n)
			}
			syncPart(tracker, part, done)
			second = append(second, part)
			continue
		}
		tracker.Begin(key(part))
		first = append(first, part)
		tracker.End(key(part), Result{})
		if deferred := tracker.Defer(key(part)); deferred != (len(first) < n) {
			t.Fatalf("after %d of %d first syncs the second one of %s is deferred: %v", len(first), n, part, deferred)
		} else if !deferred {
			syncPart(tracker, part, done)
			second = append(second, part)
		}
	}
	slices.Sort(second)
	if diff := cmp.Diff(first, slices.Compact(second)); diff != "" {
		t.Errorf("parts with a second sync (-want +got):\n%s", diff)
	}
	if s, _ := tracker.Summary(shop); !s.Settled {
		t.Errorf("summary %+v, want the round settled", s)
	}
}

// TestDefer checks which syncs are deferred, and which parts come later. In each case the round of
// all parts has begun, and the first part has had its first sync.
func TestDefer(t *testing.T) {
	const n = maxQueued + 3
	tests := []struct {
		name string
		// part is deferred. Then is called after that, before the other parts begin.
		part     string
		then     func(*Tracker, *cluster)
		deferred bool
		// again are the parts that come once more after their first sync.
		again []string
	}{
		{"a part that was synced", name(0), nil, true, []string{name(0)}},
		{"a part that waits", name(n - 1), nil, true, nil},
		{"a part in the queue", name(1), nil, true, nil},
		{"no part", "other", nil, false, nil},
		{
			"it is deferred twice", name(0),
			func(tr *Tracker, _ *cluster) { tr.Defer(key(name(0))) }, true, []string{name(0)},
		},
		{
			"it is synced for another reason", name(0),
			func(tr *Tracker, _ *cluster) { syncPart(tr, name(0), done) }, true, nil,
		},
		{"it goes", name(0), func(tr *Tracker, w *cluster) {
			delete(w.inputs, name(0))
			tr.Input(key(name(0)), w.find(name(0)))
		}, true, nil},
		{"the parent is forgotten", name(0), func(tr *Tracker, _ *cluster) {
			tr.Forget(hook.ParentKey(shop))
		}, true, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tracker, l, _ := newTracker()
			w := inputs(n)
			observe(t, tracker, w, 1)
			syncPart(tracker, name(0), Result{})
			l.took()
			if deferred := tracker.Defer(key(test.part)); deferred != test.deferred {
				t.Errorf("deferred %v, want %v", deferred, test.deferred)
			}
			if test.then != nil {
				test.then(tracker, w)
			}
			for i := 1; i < n; i++ {
				syncPart(tracker, name(i), done)
			}
			queued, _ := l.took()
			var again []string
			for _, part := range queued {
				if part == name(0) {
					again = append(again, part)
				}
			}
			if diff := cmp.Diff(test.again, again); diff != "" {
				t.Errorf("parts that come again (-want +got):\n%s", diff)
			}
			if tracker.Defer(key(name(0))) {
				t.Error("a part is deferred after the first syncs of the round")
			}
		})
	}
}

// TestDeferredPartsInAnotherRound has another round begin while parts are deferred: each is synced
// once in it. A part that takes no part in it, because its input is undecided, comes afterwards.
func TestDeferredPartsInAnotherRound(t *testing.T) {
	tracker, l, _ := newTracker()
	w := inputs(maxQueued + 1)
	output := object.Ref{Namespace: "shop", Name: "o"}
	owner := view.Owner{UID: w.uid, Namespace: "shop"}
	tracker.Output(0, output, owner, "undecided", true, newOutput(t, rand.New(rand.NewPCG(1, 1)), output.Name))
	observe(t, tracker, w, 1)
	syncPart(tracker, name(0), Result{})
	for _, part := range []string{name(0), "undecided"} {
		if !tracker.Defer(key(part)) {
			t.Fatalf("%s is not deferred", part)
		}
	}
	l.took()
	observe(t, tracker, w, 2)
	for i := maxQueued; i >= 0; i-- {
		syncPart(tracker, name(i), done)
	}
	queued, _ := l.took()
	if len(queued) != maxQueued+2 || queued[len(queued)-1] != "undecided" {
		t.Errorf("%d parts were queued, the last %q; want each input once, then the part that was left out",
			len(queued), queued[len(queued)-1])
	}
}
