package queue

import (
	"slices"
	"time"
)

// waiters are the calls of Get that wait. A key wakes one of them, the one that has waited
// for the shortest time: more would find nothing to do. One of them, at most, watches the time for
// the keys that become ready later. The zero value has none. The queue's lock guards all of them.
type waiters struct {
	idle []*waiter
	// timer is the one that watches the time, until due; it is in idle. It may be nil.
	timer *waiter
	due   time.Time
	// unused are waiters for later calls.
	unused []*waiter
}

// waiter is one waiting call.
type waiter struct {
	// wake has room for one element, and gets it when the waiter leaves the list.
	wake chan struct{}
}

// get returns a waiter that is not in the list.
func (w *waiters) get() *waiter {
	last := len(w.unused) - 1
	if last < 0 {
		return &waiter{wake: make(chan struct{}, 1)}
	}
	one := w.unused[last]
	w.unused = w.unused[:last]
	return one
}

// free ends the use of a waiter.
func (w *waiters) free(one *waiter) {
	w.remove(one)
	w.unused = append(w.unused, one)
}

// add adds a waiter at the end. It reports whether the waiter must watch the time:
// for a key that is due earlier than any that is watched for. A zero time is none.
func (w *waiters) add(one *waiter, due time.Time) bool {
	w.remove(one)
	select { // it may have been woken for a key that another worker has taken
	case <-one.wake:
	default:
	}
	w.idle = append(w.idle, one)
	if due.IsZero() || w.timer != nil && !due.Before(w.due) {
		return false
	}
	w.timer = one
	w.due = due
	return true
}

// timed reports whether a waiter watches the time, or that there is no waiter.
func (w *waiters) timed() bool { return w.timer != nil || len(w.idle) == 0 }

// remove removes a waiter, if it is in the list.
func (w *waiters) remove(one *waiter) {
	if at := slices.Index(w.idle, one); at >= 0 {
		w.idle = slices.Delete(w.idle, at, at+1)
	}
	if w.timer == one {
		w.timer = nil
	}
}

// wakeOne wakes the waiter that came last; the one that watches the time only if it is alone.
func (w *waiters) wakeOne() {
	for at := len(w.idle) - 1; at >= 0; at-- {
		if one := w.idle[at]; one != w.timer || at == 0 && len(w.idle) == 1 {
			w.wake(one)
			return
		}
	}
}

// wakeFor has a waiter watch the time for a key that is due then.
func (w *waiters) wakeFor(due time.Time) {
	switch {
	case w.timer == nil:
		w.wakeOne()
	case due.Before(w.due):
		w.wake(w.timer)
	}
}

// wakeAll wakes all waiters.
func (w *waiters) wakeAll() {
	for len(w.idle) > 0 {
		w.wake(w.idle[0])
	}
}

func (w *waiters) wake(one *waiter) {
	w.remove(one)
	one.wake <- struct{}{}
}
