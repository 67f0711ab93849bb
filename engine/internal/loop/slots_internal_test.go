package loop

import (
	"testing"

	"github.com/hookloop/hookloop/engine/internal/loop/share"
)

// TestReturnBetweenTwoRests: a reconcile comes back after the only worker has looked for such ones
// and before it rests. The worker gives its slot up although no key comes.
func TestReturnBetweenTwoRests(t *testing.T) {
	s := newSlots(1, share.NewWaits(1, 1), func() {})
	if !s.release(1) { // its slot goes to a new worker
		t.Fatal("there is no room to wait")
	}
	if s.yield() {
		t.Fatal("the new worker has given its slot up, and nobody needs it")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.regain(1)
	}()
	for back := 0; back == 0; {
		s.mu.Lock()
		back = len(s.back)
		s.mu.Unlock()
	}
	idle := &idleWorker{}
	resting := s.rest(t.Context(), idle)
	if resting.Err() == nil {
		t.Error("the worker waits for a key, and the reconcile for the worker")
	}
	s.rested(idle)
	if !s.yield() {
		t.Error("the worker has kept its slot")
	}
	<-done
}
