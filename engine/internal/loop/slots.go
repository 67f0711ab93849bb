package loop

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// slowAfter is how long a reconcile may wait for a peer before it no longer counts as one of
	// Config.Workers.
	slowAfter = time.Second
	// waitsPerWorker bounds the reconciles of one controller that wait, by its workers.
	waitsPerWorker = 20
)

// slots are the Config.Workers of a controller. A worker holds one while it waits for a key and
// while it reconciles, but not while its reconcile waits for a slow peer, or does nothing but
// write: another worker has it then, so that slow keys do not hold up quick ones, and so that the
// writes of several keys are under way together.
type slots struct {
	waits WaitLimit
	most  int
	// spawn starts a worker that holds a slot.
	spawn func()

	mu sync.Mutex // guards the fields below
	// waiting are the reconciles without a slot that come back. writes are those of the reconciles
	// without a slot that do not.
	waiting, writes int
	free            int
	// back are reconciles that have ended their wait and need a slot again, in order.
	back []chan struct{}
	// idle are the workers that wait for a key: any of them can be called off.
	idle map[*idleWorker]struct{}
}

// idleWorker is a worker that waits for a key. Its context is used for many waits, until it has
// ended.
type idleWorker struct {
	resting context.Context //nolint:containedctx // of one wait after the other, to make it once
	callOff context.CancelFunc
}

func newSlots(workers int, waits WaitLimit, spawn func()) *slots {
	return &slots{waits: waits, most: workers * waitsPerWorker, spawn: spawn, idle: map[*idleWorker]struct{}{}}
}

// rest notes that a worker waits for a key. The context of w ends when its slot is needed by a
// reconcile that comes back, immediately if one came back while no worker was idle.
func (s *slots) rest(ctx context.Context, w *idleWorker) context.Context {
	if w.resting == nil || w.resting.Err() != nil {
		w.resting, w.callOff = context.WithCancel(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle[w] = struct{}{}
	if len(s.back) > 0 {
		w.callOff()
	}
	return w.resting
}

// rested notes that a worker no longer waits.
func (s *slots) rested(w *idleWorker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.idle, w)
}

// yield gives a worker's slot to a reconcile that comes back. It reports whether there was one:
// then the worker ends.
func (s *slots) yield() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pass()
}

func (s *slots) pass() bool {
	if len(s.back) == 0 {
		return false
	}
	close(s.back[0])
	s.back = s.back[1:]
	return true
}

// leave gives the slot of a worker back that ends.
func (s *slots) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.pass() {
		s.free++
	}
}

// release gives the slot of a reconcile that waits to another one. It reports whether it did: there
// may be no room for one more.
func (s *slots) release(size int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting >= s.most || s.waits == nil || !s.waits.Take(size) {
		return false
	}
	s.waiting++
	if !s.pass() {
		s.spawn()
	}
	return true
}

// regain returns when a reconcile that has ended its wait has a slot again.
func (s *slots) regain(size int64) {
	ready := make(chan struct{})
	s.mu.Lock()
	s.waiting--
	s.waits.Give(size)
	if s.free > 0 {
		s.free--
		close(ready)
	} else {
		s.back = append(s.back, ready)
		for w := range s.idle {
			w.callOff()
			delete(s.idle, w)
			break
		}
	}
	s.mu.Unlock()
	<-ready
}

// lend gives the slot of a reconcile with n writes to another one for good, unless the writes of
// all such reconciles would be more than most. It reports whether it did.
func (s *slots) lend(n, most int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.writes+n > most {
		return false
	}
	s.writes += n
	if !s.pass() {
		s.spawn()
	}
	return true
}

// wrote notes the end of a reconcile that has lent its slot.
func (s *slots) wrote(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes -= n
}

type slotKey struct{}

// slot is what the context of a worker's reconciles has, one after the other.
type slot struct {
	*slots
	clock clock.WithTicker
	// lent is the number of writes for which the present reconcile has lent the slot; 0 if it has it.
	// Only the goroutine of the reconcile uses it.
	lent int
}

func withSlot(ctx context.Context, s *slot) context.Context {
	return context.WithValue(ctx, slotKey{}, s)
}

// OnlyWrites reports that the rest of a reconcile does nothing but write, with at most n writes
// under way, and waits for no peer. The reconcile does not count against Config.Workers any more
// if all such reconciles of the controller together have at most most writes. It must be called in
// the goroutine of the reconcile. With a context that is not a reconcile's, it does nothing.
func OnlyWrites(ctx context.Context, n, most int) {
	if s, ok := ctx.Value(slotKey{}).(*slot); ok && s.lent == 0 && n > 0 && s.lend(n, most) {
		s.lent = n
	}
}

// Wait reports that a reconcile is about to wait for a peer, such as a hook, and returns a function
// that ends the wait. A long wait does not count against Config.Workers; then size is called for
// the bytes that the reconcile holds meanwhile. With a context that is not a reconcile's, Wait does
// nothing.
func Wait(ctx context.Context, size func() int64) (done func()) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok || s.lent > 0 {
		return func() {}
	}
	w := &slowWait{slots: s.slots, size: size}
	timer := afterFunc(s.clock, slowAfter, w.begin)
	return func() {
		timer.Stop()
		w.end()
	}
}

// afterFunc calls f after a time in a goroutine of its own, so that a wait without one costs a
// timer only. A clock of a test that has no such timers is not used.
func afterFunc(c clock.Clock, after time.Duration, f func()) clock.Timer {
	if c, ok := c.(clock.WithDelayedExecution); ok {
		return c.AfterFunc(after, f)
	}
	return clock.RealClock{}.AfterFunc(after, f)
}

// slowWait is the wait of one reconcile.
type slowWait struct {
	slots *slots
	size  func() int64

	mu       sync.Mutex // guards the fields below
	bytes    int64
	released bool
	ended    bool
}

// begin gives the slot to another reconcile, unless the wait has ended meanwhile.
func (w *slowWait) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return
	}
	w.bytes = w.size()
	w.released = w.slots.release(w.bytes)
}

func (w *slowWait) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	if w.released {
		w.slots.regain(w.bytes)
	}
}
