// Package reach decides when the parents of an unreachable hook are synced again. While a hook is
// down, one probe every few seconds replaces the retries of all parents that wait for it; when any
// sync reaches the hook again, all of them are synced at once.
//
// It asks no hook itself: the pipeline reports how each sync went, and a probe is a sync like any
// other. A Tracker belongs to one controller and is safe for concurrent use; its memory is bounded
// by the controller's parents. Tests run on a fake clock.
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
	// one lost connection is retried at once.
	downAfter = 3
	// minProbe and maxProbe bound the time between two probes of a hook, which grows while it is
	// down.
	minProbe = time.Second
	maxProbe = 5 * time.Second
	// probeShare is the time between two probes, as one n-th of the time for which the hook has
	// been down.
	probeShare = 10
	// fallback is the time, less up to a half, after which a waiting parent is synced again without
	// a successful probe.
	fallback = 1000 * time.Second
	// spread is the time between two parents that are asked about again, on average; maxSpread
	// bounds it for all of them.
	spread    = 2 * time.Millisecond
	maxSpread = 3 * time.Second
)

// Settings configure a Tracker.
type Settings[K comparable] struct {
	Clock clock.WithTicker
	// Enqueue has a parent synced after a time.
	Enqueue func(key K, after time.Duration)
	// Other returns a parent that does not wait, or false. Every second probe is one of it: a
	// parent for which the hook always fails does not show the state of the hook.
	Other func(waits func(K) bool) (K, bool)
}

// Tracker follows whether the hooks of one controller are reached.
type Tracker[K comparable] struct {
	Settings[K]

	mu sync.Mutex // guards the fields below
	// hooks are those that the last sync missed, by name.
	hooks map[string]*hook[K]
	// waits names the hook that each parent waits for. Invariant: a key is in waits exactly if it
	// is in the waiting of that hook.
	waits map[K]string
	// changed is closed and replaced when a hook goes down.
	changed chan struct{}
}

// hook is a hook that was missed.
type hook[K comparable] struct {
	// misses counts consecutive syncs that missed it; since is the time of the first.
	misses int
	since  time.Time
	// waiting are the parents that wait, in the order of probes.
	waiting []K
	probes  int
	next    time.Time
}

// New returns a Tracker. Run makes its probes.
func New[K comparable](s Settings[K]) *Tracker[K] {
	return &Tracker[K]{Settings: s, hooks: map[string]*hook[K]{}, waits: map[K]string{}, changed: make(chan struct{})}
}

// Missed notes that a sync of a parent did not reach a hook. It returns how long the parent need
// not be synced again, because probes are made; 0 leaves the parent to its own backoff.
func (t *Tracker[K]) Missed(key K, name string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	h := t.hooks[name]
	if h == nil {
		h = &hook[K]{since: t.Clock.Now()}
		t.hooks[name] = h
	}
	if h.misses++; h.misses < downAfter {
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
	return fallback/2 + rand.N(fallback/2) //nolint:gosec // jitter needs no secret
}

// Reached records that a sync of a parent reached a hook. The parents that wait for it are synced
// at once, and so are those that wait for the hook that this parent waited for.
func (t *Tracker[K]) Reached(key K, name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if other, waits := t.waits[key]; waits {
		t.wake(other, key)
	}
	t.wake(name, key)
}

// wake has the parents synced that wait for a hook, but for the one that has got through.
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

// Forget drops a parent that is gone.
func (t *Tracker[K]) Forget(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave(key)
}

// leave takes a parent out of those that wait. A hook for which none waits is forgotten: nothing
// would probe it.
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

// Waiting is how many parents wait.
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

// probe makes the probes that are due. It returns the time until the next one, 0 for none, and a
// channel that is closed when that time changes.
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

// candidate is the parent that the next probe syncs: those that wait in turn, and every second time
// one that does not.
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

// jitter is a time, more or less up to a quarter.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2) } //nolint:gosec // needs no secret
