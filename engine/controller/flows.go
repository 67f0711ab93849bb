package controller

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"k8s.io/klog/v2"
)

// sourceBackoff is the wait before a source that failed is started again.
const sourceBackoff = time.Second

// measurePeriod is how old the metrics of keys in work may be.
const measurePeriod = time.Second

// source runs a source until ctx is done.
func (c *Controller) source(ctx context.Context, s Source) {
	for {
		err := c.guarded(ctx, s)
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "source has ended and is started again")
		timer := c.settings.Clock.NewTimer(sourceBackoff)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

func (c *Controller) guarded(ctx context.Context, s Source) error {
	defer c.guard(ctx)
	return s(ctx, c.Enqueue)
}

// measure keeps the metrics of keys in work fresh.
func (c *Controller) measure(ctx context.Context) {
	ticker := c.settings.Clock.NewTicker(measurePeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			c.queue.Measure()
		}
	}
}

// resync enqueues every object of the watched types once in each period, spread over a quarter of
// it, so that no burst of syncs delays an event.
func (c *Controller) resync(ctx context.Context) {
	for {
		timer := c.settings.Clock.NewTimer(c.settings.ResyncPeriod)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C():
		}
		for _, w := range c.watched {
			if err := c.resyncAll(w); err != nil { // events and the next resync bring them
				klog.FromContext(ctx).Error(err, "resync is left out")
			}
		}
	}
}

// resyncAll enqueues the objects of one type that would count if they were new.
func (c *Controller) resyncAll(w watched) error {
	objects, err := c.counting(w)
	if err != nil {
		return err
	}
	for o := range objects {
		wait := rand.N(c.settings.ResyncPeriod/4 + 1) //nolint:gosec // jitter needs no secret
		c.queue.AddAfter(object.Key{Parent: o.Ref()}, wait, queue.Resync,
			queue.Cause{Kind: queue.CauseResync, At: c.settings.Clock.Now()})
	}
	return nil
}

// counting are the objects of one type that would count if they were new.
func (c *Controller) counting(w watched) (iter.Seq[*object.Object], error) {
	v, err := c.Reader().View(w.resource)
	if err != nil {
		return nil, err
	}
	counts := func(o *object.Object) bool {
		return w.counts(cache.Event{Type: cache.Added, Resource: w.resource, New: o, Initial: true})
	}
	return v.List("").Where(counts).All(), nil
}

// Trigger enqueues the watched objects that match, and returns how many. Without a match it is all
// of them. It fails with a *view.Error if the objects of a watched type are not known.
func (c *Controller) Trigger(match func(*object.Object) bool, p queue.Priority, reason string) (int, error) {
	n := 0
	for _, w := range c.watched {
		objects, err := c.counting(w)
		if err != nil {
			return n, err
		}
		for o := range objects {
			if match == nil || match(o) {
				c.Enqueue(object.Key{Parent: o.Ref()}, p, queue.Cause{Kind: queue.CauseTrigger, Reason: reason})
				n++
			}
		}
	}
	return n, nil
}

// EnqueueAfter brings a key to the queue after a time.
func (c *Controller) EnqueueAfter(key object.Key, after time.Duration, p queue.Priority, kind queue.CauseKind) {
	c.queue.AddAfter(key, after, p, queue.Cause{Kind: kind, At: c.settings.Clock.Now().Add(after)})
}

// Sample returns the key of a watched object at random, of those that do not match. It reports
// whether there is one that is known.
func (c *Controller) Sample(match func(object.Key) bool) (sample object.Key, found bool) {
	n := 0
	for _, w := range c.watched {
		objects, err := c.counting(w)
		if err != nil {
			continue // a sample is of what is known
		}
		for o := range objects {
			key := object.Key{Parent: o.Ref()}
			if match(key) {
				continue
			}
			if n++; rand.N(n) == 0 { //nolint:gosec // a sample needs no secret
				sample, found = key, true
			}
		}
	}
	return sample, found
}
