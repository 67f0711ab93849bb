package cache

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// settle is how long a watch must stay open without an error before it counts as good, if it has
// nothing to deliver.
const settle = time.Second

// health tracks whether a resource's list and watch fail, since when, and the last failure.
type health struct {
	resource   object.Resource
	clock      clock.WithDelayedExecution
	staleAfter time.Duration
	// troubled is the fast path of good, which each event calls.
	troubled atomic.Bool
	// stale is the error of reads; nil while the view may be read.
	stale atomic.Pointer[view.Error]

	mu       sync.Mutex // guards the fields below; held while followers are called
	err      error      // the last failure; nil if there is no trouble
	since    time.Time  // when the trouble began
	failures int        // in all
	// expiry makes the view stale; settling ends the trouble, unless there are more failures than
	// settlingAt by then.
	expiry, settling clock.Timer
	settlingAt       int
	// followers are called at each change of stale.
	followers map[*func(error)]struct{}
}

func newHealth(r object.Resource, c clock.WithDelayedExecution, staleAfter time.Duration) *health {
	return &health{resource: r, clock: c, staleAfter: staleAfter, followers: map[*func(error)]struct{}{}}
}

// failed records a failure of the list or the watch. A trouble that lasts makes the view stale.
func (h *health) failed(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failures++
	before := h.err
	h.err = err
	if h.troubled.Load() {
		if h.stale.Load() != nil && codeOf(before) != codeOf(err) {
			h.become(h.error())
		}
		return
	}
	h.troubled.Store(true)
	h.since = h.clock.Now()
	since := h.since
	h.expiry = h.after(h.staleAfter, func() {
		if h.err != nil && h.since.Equal(since) {
			h.become(h.error())
		}
	})
}

// codeOf is the code of the API server's answer; 0 for an error that is none. Texts differ with
// each try, codes do not.
func codeOf(err error) int32 {
	var answer apierrors.APIStatus
	if errors.As(err, &answer) {
		return answer.Status().Code
	}
	return 0
}

// good ends a trouble: the list or the watch works.
func (h *health) good() {
	if !h.troubled.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.recover()
}

// accepted ends a trouble if the watch that has been accepted stays without a failure for a while.
func (h *health) accepted() {
	if !h.troubled.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.settling != nil {
		if h.settlingAt == h.failures { // a watch without a failure since then has been accepted before
			return
		}
		h.settling.Stop()
	}
	h.settlingAt = h.failures
	h.settling = h.after(settle, func() {
		if h.settlingAt == h.failures {
			h.recover()
		}
	})
}

// recover ends a trouble. The caller holds the lock.
func (h *health) recover() {
	h.stopTimers()
	h.err = nil
	h.since = time.Time{}
	h.troubled.Store(false)
	if h.stale.Load() != nil {
		h.become(nil)
	}
}

// become changes whether the view may be read, or why it may not, and calls the followers. The
// caller holds the lock.
func (h *health) become(stale *view.Error) {
	h.stale.Store(stale)
	for f := range h.followers {
		(*f)(h.readable())
	}
}

// readable is the error of reads.
func (h *health) readable() error {
	if err := h.stale.Load(); err != nil {
		return err
	}
	return nil
}

// error is the error of a stale view. The caller holds the lock.
func (h *health) error() *view.Error {
	return &view.Error{Resource: h.resource, State: view.Stale, Since: h.since, Err: h.err}
}

// after calls f with the lock held, unless the trouble has ended by then. The caller holds the
// lock.
func (h *health) after(d time.Duration, f func()) clock.Timer {
	return h.clock.AfterFunc(d, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.troubled.Load() {
			f()
		}
	})
}

func (h *health) stopTimers() {
	for _, t := range []clock.Timer{h.expiry, h.settling} {
		if t != nil {
			t.Stop()
		}
	}
	h.expiry = nil
	h.settling = nil
}

// follow calls f at each change of whether the view may be read: with a *view.Error or, when it is
// good again, nil.
func (h *health) follow(f func(error)) (cancel func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.followers[&f] = struct{}{}
	if err := h.readable(); err != nil {
		f(err)
	}
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.followers, &f)
	}
}

// last is when the trouble began, and the last failure; nil if there is no trouble.
func (h *health) last() (since time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.since, h.err
}

// close stops the timers of a watch that ends.
func (h *health) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopTimers()
}
