package controller

import (
	"context"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/internal/engine/expectations"
	"k8s.io/klog/v2"
)

const (
	// expectationTimeout bounds the wait for a view to show an own write. The event of the write
	// brings the key as a rule; this is for a watch that has stalled.
	expectationTimeout = 30 * time.Second
	// expectationPoll is how often a key that waits is looked at: a write whose event the filters
	// drop brings nothing.
	expectationPoll = 200 * time.Millisecond
)

// expected are the writes of each key that the views have not shown when they were last looked at.
type expected struct {
	mu   sync.Mutex // guards keys; the values belong to the one worker that has the key
	keys map[object.Key]*awaited
}

// awaited is what one key waits for.
type awaited struct {
	writes *expectations.Recorder
	// since is when the wait began; zero while the key has not come to the queue.
	since time.Time
	// item is what has been put off so far; meaningful if since is set.
	item queue.Item
}

func (e *expected) of(key object.Key) *awaited {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key]
}

func (e *expected) set(key object.Key, a *awaited) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.keys == nil {
		e.keys = map[object.Key]*awaited{}
	}
	e.keys[key] = a
}

func (e *expected) forget(key object.Key) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.keys, key)
}

// showsWrites reports whether the views show what the last reconcile of a key has written. If so,
// or if they have not for too long, it returns the item with everything for which the key was put
// off; if not, the key comes again.
func (c *Controller) showsWrites(ctx context.Context, item queue.Item) (queue.Item, bool) {
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
	case now.Sub(a.since) >= expectationTimeout: // preconditions guard what is decided from here on
		klog.FromContext(
			ctx,
		).Info(
			"own writes are not shown: the key is reconciled without",
			"key",
			item.Key.String(),
			"writes",
			a.writes.Len(),
			"waited",
			expectationTimeout,
		)
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

// reconcileExpecting reconciles one key and records what it writes.
func (c *Controller) reconcileExpecting(ctx context.Context, item queue.Item) (Result, error) {
	writes := &expectations.Recorder{}
	defer func() {
		if writes.Len() > 0 {
			c.expected.set(item.Key, &awaited{writes: writes})
		}
	}()
	return c.protected(expectations.NewContext(ctx, writes), item)
}
