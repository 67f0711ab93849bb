package hook

import (
	"sync"
	"time"
)

// working counts functions that run. The zero value counts none.
type working struct {
	mu    sync.Mutex // guards what follows
	count int
	idle  chan struct{} // closed when the count is 0 again; nil unless somebody waits
}

// run calls a function in a goroutine.
func (w *working) run(f func()) {
	w.mu.Lock()
	w.count++
	w.mu.Unlock()
	go func() {
		defer w.done()
		f()
	}()
}

func (w *working) done() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.count--; w.count == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// wait waits until nothing runs, for a time at most. It says whether nothing does.
func (w *working) wait(most time.Duration) bool {
	w.mu.Lock()
	if w.count == 0 {
		w.mu.Unlock()
		return true
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-idle:
		return true
	case <-timer.C:
		return false
	}
}
