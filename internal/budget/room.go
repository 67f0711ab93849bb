package budget

import (
	"context"
	"slices"
	"sync"
)

// room hands out the free memory of a share. Waiting callers are served in order. A smaller request
// may pass one that waits, but all that pass it may not take more bytes than the share has, so that
// it does not starve. It is safe for concurrent use.
type room struct {
	size int64

	mu      sync.Mutex // guards the fields below
	free    int64      // Invariant: 0 <= free <= size
	waiting []*waiter  // oldest first
}

// waiter stands for a caller that waits.
type waiter struct {
	bytes  int64
	passed int64 // bytes of callers that came later and were served
	served chan struct{}
}

func newRoom(size int64) *room { return &room{size: size, free: size} }

// take takes n bytes if they are free, even if others wait. Use it for callers that hold a part
// already or that do not wait. They release what they have soon, so the others do not wait forever.
func (r *room) take(n int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.free {
		return false
	}
	r.free -= n
	return true
}

// wait takes n bytes, and waits for them until ctx ends. n must not exceed the size.
func (r *room) wait(ctx context.Context, n int64) error {
	r.mu.Lock()
	w := &waiter{bytes: n, served: make(chan struct{})}
	r.waiting = append(r.waiting, w)
	r.serve()
	r.mu.Unlock()
	select {
	case <-w.served:
		return nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.waiting, w)
	if at < 0 { // it was served meanwhile
		return nil
	}
	r.waiting = slices.Delete(r.waiting, at, at+1)
	r.serve() // others may have waited behind it
	return ctx.Err()
}

// put returns n bytes. It panics if they were not taken, because the share would lose its limit.
func (r *room) put(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > r.size-r.free {
		panic("budget: more bytes are released than were acquired")
	}
	r.free += n
	r.serve()
}

// serve gives memory to the waiting callers that fit. The caller must hold the lock.
func (r *room) serve() {
	kept := r.waiting[:0]
	for _, w := range r.waiting {
		if w.bytes > r.free || !pass(kept, w.bytes, r.size) {
			kept = append(kept, w)
			continue
		}
		r.free -= w.bytes
		close(w.served)
	}
	clear(r.waiting[len(kept):])
	r.waiting = kept
}

// pass counts n bytes against the waiters that are about to be passed. It returns false, and counts
// nothing, if that would be too many for one of them.
func pass(before []*waiter, n, limit int64) bool {
	for _, w := range before {
		if w.passed+n > limit {
			return false
		}
	}
	for _, w := range before {
		w.passed += n
	}
	return true
}
