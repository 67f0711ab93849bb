package share

import "sync"

// Waits bounds the syncs that wait for slow hooks beside a controller's workers: each needs a
// goroutine and the memory of its question. A nil *Waits allows none.
type Waits struct {
	// most and mostBytes are the limits.
	most      int
	mostBytes int64

	mu      sync.Mutex // guards the fields below
	syncs   int
	bytes   int64
	refused int64
}

// NewWaits returns a bound for the number of waiting syncs and for the bytes of their questions.
func NewWaits(most int, mostBytes int64) *Waits { return &Waits{most: most, mostBytes: mostBytes} }

// Take reserves room for one sync with a question of a size. It reports whether there is room.
func (w *Waits) Take(size int64) bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.syncs >= w.most || w.bytes+size > w.mostBytes {
		w.refused++
		return false
	}
	w.syncs++
	w.bytes += size
	return true
}

// Give returns what Take reserved.
func (w *Waits) Give(size int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.syncs--
	w.bytes -= size
}

// Stats are the syncs that wait, the bytes of their questions, and how often there was no room.
func (w *Waits) Stats() (syncs int, bytes, refused int64) {
	if w == nil {
		return 0, 0, 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.syncs, w.bytes, w.refused
}
