package loop

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// expectationTimeout bounds the wait for a view to show an own write. As a rule the event of
	// the write enqueues the key; the timeout is for a watch that has stalled.
	expectationTimeout = 30 * time.Second
	// conflictTimeout bounds the first wait for the state that a refused write has met; it doubles
	// with each consecutive failure up to expectationTimeout. It is for an object that has not
	// changed.
	conflictTimeout = time.Second
	// expectationPoll is the time between two checks of a key that waits: a write enqueues nothing
	// if the predicates drop its event.
	expectationPoll = 200 * time.Millisecond
	// causePoll is the cause of such a check. No reconciler gets it.
	causePoll queue.CauseKind = "poll"
)

// expected holds, for each key, the writes that the views did not show at the last check (KEP-5647;
// client-go's ControllerExpectations).
type expected[K comparable] struct {
	mu   sync.Mutex // guards keys and waiting; other values belong to the one worker that has the key
	keys map[K]*awaited[K]
}

// awaited are the writes that one key waits for.
type awaited[K comparable] struct {
	writes *expectations.Recorder
	// since is the start of the wait; zero until the key comes out of the queue.
	since time.Time
	// item merges the items that were postponed; meaningful if since is set.
	item queue.Item[K]
	// poll enqueues the key for the next check; nil before the wait. It is a timer beside the queue:
	// the queue keeps only the earliest of a key's delays, and a reconciler may have asked for a
	// later one.
	poll clock.Timer
	// waiting reports whether since is set.
	waiting bool
}

func (e *expected[K]) of(key K) *awaited[K] {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key]
}

func (e *expected[K]) set(key K, a *awaited[K]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys == nil {
		e.keys = map[K]*awaited[K]{}
	}
	e.keys[key] = a
}

// wait notes that a key waits for its writes.
func (e *expected[K]) wait(a *awaited[K]) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.waiting = true
}

// postponed is the number of keys that wait for their writes.
func (e *expected[K]) postponed() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, a := range e.keys {
		if a.waiting {
			n++
		}
	}
	return n
}

func (e *expected[K]) forget(key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// timeout is the longest wait, after a number of consecutive failures.
func (a *awaited[K]) timeout(failures int) time.Duration {
	if !a.writes.OnlyRefused() || failures > 5 {
		return expectationTimeout
	}
	return conflictTimeout << max(0, failures-1)
}

// showsWrites reports whether the views show what the last reconcile of a key wrote, and a newer
// state of the objects that it could not write, or the wait for them has timed out. Then it
// returns the item, merged with those that were postponed; if not, it checks again later. It
// reports false for the check of a wait that has ended meanwhile: the key needs no reconcile.
func (c *Loop[K]) showsWrites(ctx context.Context, item queue.Item[K]) (queue.Item[K], bool) {
	item, caused := withoutPolls(item)
	a := c.expected.of(item.Key)
	if a == nil || !caused && a.since.IsZero() {
		return item, caused
	}
	now := c.config.Clock.Now()
	met := a.writes.Met(c.Reader())
	if !a.since.IsZero() {
		a.poll.Stop()
		item = item.After(a.item)
	}
	switch {
	case met:
	case a.since.IsZero():
		a.since = now
		c.expected.wait(a)
	case now.Sub(a.since) >= a.timeout(item.Attempt): // preconditions guard the writes from here on
		klog.FromContext(ctx).Info("own writes or conflicts are not shown: the key is reconciled without",
			"key", fmt.Sprint(item.Key), "writes", a.writes.Len(), "waited", a.timeout(item.Attempt))
		met = true
	}
	if met {
		c.expected.forget(item.Key)
		return item, item.Count > 0
	}
	a.item = item
	cause := queue.Cause{Kind: causePoll, At: now.Add(expectationPoll)}
	a.poll = afterFunc(c.config.Clock, expectationPoll, func() {
		go c.queue.Add(item.Key, item.Priority, cause) // a clock of a test holds its lock meanwhile
	})
	return item, false
}

// withoutPolls returns an item without the causes of checks, and reports whether it has others.
func withoutPolls[K comparable](item queue.Item[K]) (queue.Item[K], bool) {
	n := len(item.Causes)
	item.Causes = slices.DeleteFunc(item.Causes, func(c queue.Cause) bool { return c.Kind == causePoll })
	item.Count -= n - len(item.Causes)
	return item, item.Count > 0
}

// reconcileExpecting reconciles one key and records its writes.
func (c *Loop[K]) reconcileExpecting(ctx context.Context, item queue.Item[K]) (Result, error) {
	writes := &expectations.Recorder{}
	defer func() {
		if writes.Len() > 0 {
			c.expected.set(item.Key, &awaited[K]{writes: writes})
		}
	}()
	return c.reconcileSafely(expectations.NewContext(ctx, writes), item)
}
