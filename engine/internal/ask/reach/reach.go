// Package reach decides when the parents of an unreachable hook are synced again. While a hook is
// down, one probe every few seconds replaces the syncs of all parents that wait for it. When any
// sync reaches the hook again, all of them are synced soon.
//
// It calls no hook itself: the pipeline reports the result of each sync, and a probe is a sync like
// any other. A Tracker belongs to one controller and is safe for concurrent use; its memory is
// bounded by the controller's parents. Tests run on a fake clock.
package reach

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// downAfter is the number of consecutive syncs that must miss a hook before it counts as down:
	// one lost connection is retried immediately.
	downAfter = 3
	// minProbe and maxProbe bound the time between two probes of a hook, which grows while it is
	// down.
	minProbe = time.Second
	maxProbe = 5 * time.Second
	// probeShare is the time between two probes, as one n-th of the time for which the hook has
	// been down.
	probeShare = 10
	// longestWait is the time after which a waiting parent is synced in any case, less up to a
	// half.
	longestWait = 1000 * time.Second
	// spread is the average time between the syncs of two parents after an outage; maxSpread bounds
	// the time for all of them.
	spread    = 2 * time.Millisecond
	maxSpread = 3 * time.Second
)

// Config configures a Tracker.
type Config[K comparable] struct {
	Clock clock.WithTicker
	// Enqueue adds a parent to the queue after a time.
	Enqueue func(key K, after time.Duration)
	// Other returns a parent that does not wait, or false. Every second probe syncs such a parent:
	// if the hook fails about one parent each time, this proves nothing about the hook.
	Other func(waits func(K) bool) (K, bool)
}

// Tracker tracks whether the hooks of one controller are reachable.
type Tracker[K comparable] struct {
	Config[K]

	mu sync.Mutex // guards the fields below
	// hooks are those that the last sync missed, by name.
	hooks map[string]*hook[K]
	// waits holds the hook that each parent waits for. Invariant: a key is in waits if and only if
	// it is in the waiting of that hook.
	waits map[K]string
	// changed is closed and replaced when a hook goes down.
	changed chan struct{}
}

// hook is a hook that was missed.
type hook[K comparable] struct {
	// misses counts consecutive syncs that missed the hook; since is the time of the first.
	misses int
	since  time.Time
	// waiting are the parents that wait, in the order of probes.
	waiting []K
	probes  int
	next    time.Time
}

// New returns a Tracker. Run makes its probes.
func New[K comparable](s Config[K]) *Tracker[K] {
	return &Tracker[K]{Config: s, hooks: map[string]*hook[K]{}, waits: map[K]string{}, changed: make(chan struct{})}
}

// Missed records that a sync of a parent did not reach a hook. It returns the time for which the
// parent need not be synced, because of the probes; 0 leaves the parent to its own backoff.
func (t *Tracker[K]) Missed(key K, name string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hooks[name]
	if h == nil {
		h = &hook[K]{since: t.Clock.Now()}
		t.hooks[name] = h
	}
	h.misses++
	if h.misses < downAfter {
		return 0
	}
	if t.waits[key] != name {
		t.leave(key)
		t.waits[key] = name
		h.waiting = append(h.waiting, key)
	}
	if h.misses == downAfter {
		h.next = t.Clock.Now().Add(jitter(minProbe))
		close(t.changed)
		t.changed = make(chan struct{})
	}
	return longestWait/2 + rand.N(longestWait/2) //nolint:gosec // jitter needs no secret
}

// Reached records that a sync of a parent reached a hook. The parents that wait for this hook are
// synced soon, and so are those that wait for the same hook as this parent.
func (t *Tracker[K]) Reached(key K, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, waits := t.waits[key]; waits {
		t.wake(other, key)
	}
	t.wake(name, key)
}

// wake enqueues the parents that wait for a hook, except the one that reached it.
func (t *Tracker[K]) wake(name string, through K) {
	h := t.hooks[name]
	if h == nil {
		return
	}
	delete(t.hooks, name)
	over := min(maxSpread, time.Duration(len(h.waiting))*spread)
	for _, key := range h.waiting {
		delete(t.waits, key)
		if key == through {
			continue
		}
		t.Enqueue(key, rand.N(over+1)) //nolint:gosec // jitter needs no secret
	}
}

// Forget drops a deleted parent.
func (t *Tracker[K]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(key)
}

// leave removes a parent from those that wait. A hook without waiting parents is dropped, because
// nothing would probe it.
func (t *Tracker[K]) leave(key K) {
	name, waits := t.waits[key]
	if !waits {
		return
	}
	delete(t.waits, key)
	h := t.hooks[name]
	for i := range h.waiting {
		if h.waiting[i] == key {
			h.waiting = append(h.waiting[:i:i], h.waiting[i+1:]...)
			break
		}
	}
	if len(h.waiting) == 0 {
		delete(t.hooks, name)
	}
}

// Waiting returns the number of waiting parents.
func (t *Tracker[K]) Waiting() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.waits)
}

// Run makes the probes until the context ends.
func (t *Tracker[K]) Run(ctx context.Context) error {
	for {
		wait, changed := t.probe(ctx)
		var due <-chan time.Time
		var timer clock.Timer
		if wait > 0 {
			timer = t.Clock.NewTimer(wait)
			due = timer.C()
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-due:
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return nil
		}
	}
}

// probe makes the due probes. It returns the time until the next one, or 0 without one, and a
// channel that is closed when that changes.
func (t *Tracker[K]) probe(ctx context.Context) (time.Duration, <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var wait time.Duration
	now := t.Clock.Now()
	for name, h := range t.hooks {
		if len(h.waiting) == 0 {
			continue
		}
		if !h.next.After(now) {
			if h.probes == 0 {
				klog.FromContext(ctx).Info("a hook is not reached: its parents wait for a probe",
					"hook", name, "parents", len(h.waiting))
			}
			t.Enqueue(t.candidate(h), 0)
			h.next = now.Add(jitter(max(minProbe, min(maxProbe, now.Sub(h.since)/probeShare))))
		}
		if left := h.next.Sub(now); wait == 0 || left < wait {
			wait = left
		}
	}
	return wait, t.changed
}

// candidate returns the parent of the next probe: the waiting ones in turn, and every second time
// one that does not wait.
func (t *Tracker[K]) candidate(h *hook[K]) K {
	h.probes++
	if h.probes%2 == 0 && t.Other != nil {
		if key, ok := t.Other(func(key K) bool { _, waits := t.waits[key]; return waits }); ok {
			return key
		}
	}
	key := h.waiting[0]
	h.waiting = append(h.waiting[1:], key)
	return key
}

// jitter returns a time that differs by up to a quarter.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) } //nolint:gosec // needs no secret
