package queue

import (
	"testing"

	"k8s.io/utils/clock"
)

// TestRoomOfABurst adds many keys and takes them, twice: the queue keeps no room for them.
func TestRoomOfABurst(t *testing.T) {
	q := New[int](Config{Clock: clock.RealClock{}})
	take := func(n int) {
		for range n {
			item, ok := q.Get(t.Context())
			if !ok {
				t.Fatal("the queue is shut down")
			}
			q.Done(item.Key)
		}
	}
	for range 2 {
		for i := range 2 * minBurst {
			q.Add(i, Child, Cause{Kind: CauseObject})
		}
		take(2*minBurst - 1)
		if cap(q.ready[Child]) < minBurst || q.most != 2*minBurst {
			t.Fatalf("room for %d keys of %d while one is left", cap(q.ready[Child]), q.most)
		}
		take(1)
		if room := cap(q.ready[Child]); room > 0 || len(q.entries) > 0 || q.most > 0 {
			t.Errorf("room for %d keys, and %d entries of %d, want none", room, len(q.entries), q.most)
		}
	}
}
