package controller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/internal/engine/expectations"
	"k8s.io/klog/v2"
)

const (
	// expectationTimeout bounds the wait for a view to show an own write. As a rule the event of
	// the write enqueues the key; the timeout is for a watch that has stalled.
	expectationTimeout = 30 * time.Second
	// expectationPoll is the time between two checks of a key that waits: a write enqueues nothing
	// if the predicates drop its event.
	expectationPoll = 200 * time.Millisecond
)

// expected holds, for each key, the writes that the views did not show at the last check (KEP-5647;
// client-go's ControllerExpectations).
type expected[K comparable] struct {
	mu   sync.Mutex // guards keys; the values belong to the one worker that has the key
	keys map[K]*awaited[K]
}

// awaited are the writes that one key waits for.
type awaited[K comparable] struct {
	writes *expectations.Recorder
	// since is the start of the wait; zero until the key comes out of the queue.
	since time.Time
	// item merges the items that were postponed; meaningful if since is set.
	item queue.Item[K]
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

func (e *expected[K]) forget(key K) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// showsWrites reports whether the views show what the last reconcile of a key wrote, or the wait
// for them has timed out. Then it returns the item, merged with those that were postponed; if not,
// it enqueues the key again.
func (c *Controller[K]) showsWrites(ctx context.Context, item queue.Item[K]) (queue.Item[K], bool) {
	a := c.expected.of(item.Key)
	if a == nil {
		return item, true
	}
	now := c.settings.Clock.Now()
	met := a.writes.Met(c.Reader())
	if !a.since.IsZero() {
		item = item.After(a.item)
	}
	switch {
	case met:
	case a.since.IsZero():
		a.since = now
	case now.Sub(a.since) >= expectationTimeout: // preconditions guard the writes from here on
		klog.FromContext(ctx).Info("own writes are not shown: the key is reconciled without",
			"key", fmt.Sprint(item.Key), "writes", a.writes.Len(), "waited", expectationTimeout)
		met = true
	}
	if met {
		c.expected.forget(item.Key)
		return item, true
	}
	a.item = item
	c.queue.AddAfter(item.Key, expectationPoll, item.Priority,
		queue.Cause{Kind: queue.CauseRequeue, At: now.Add(expectationPoll)})
	return item, false
}

// reconcileExpecting reconciles one key and records its writes.
func (c *Controller[K]) reconcileExpecting(ctx context.Context, item queue.Item[K]) (Result, error) {
	writes := &expectations.Recorder{}
	defer func() {
		if writes.Len() > 0 {
			c.expected.set(item.Key, &awaited[K]{writes: writes})
		}
	}()
	return c.reconcileSafely(expectations.NewContext(ctx, writes), item)
}
