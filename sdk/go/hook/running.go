package hook

import (
	"sync"
	"time"
)

// running counts functions that have not returned yet. The zero value is ready to use.
type running struct {
	mu    sync.Mutex // guards the fields below
	count int
	idle  chan struct{} // closed when the count falls to 0; nil if nobody waits
}

// run calls f in a new goroutine.
func (r *running) run(f func()) {
	r.mu.Lock()
	r.count++
	r.mu.Unlock()
	go func() {
		defer r.done()
		f()
	}()
}

func (r *running) done() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count--
	if r.count == 0 && r.idle != nil {
		close(r.idle)
		r.idle = nil
	}
}

// wait waits until no function is running, or for timeout. It returns false if a function is still
// running.
func (r *running) wait(timeout time.Duration) bool {
	r.mu.Lock()
	if r.count == 0 {
		r.mu.Unlock()
		return true
	}
	if r.idle == nil {
		r.idle = make(chan struct{})
	}
	idle := r.idle
	r.mu.Unlock()
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
