package loop

import (
	"context"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"github.com/hookloop/hookloop/internal/sleep"
	"k8s.io/klog/v2"
)

const (
	// sourceBackoff is the wait before a source that failed is started again.
	sourceBackoff = time.Second
	// measurePeriod is the largest age of the metrics of keys in work.
	measurePeriod = time.Second
)

// source runs a source until ctx is done.
func (c *Loop[K]) source(ctx context.Context, s Source[K]) {
	for {
		err := c.runSource(ctx, s)
		if ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "source has ended and is started again")
		if !sleep.For(ctx.Done(), c.config.Clock, sourceBackoff) {
			return
		}
	}
}

func (c *Loop[K]) runSource(ctx context.Context, s Source[K]) (err error) {
	defer panics.Recover(ctx, &err, panicInMapper)
	return s(ctx, c.Enqueue)
}

// measure keeps the metrics of keys in work current.
func (c *Loop[K]) measure(ctx context.Context) {
	for sleep.For(ctx.Done(), c.config.Clock, measurePeriod) {
		c.queue.Measure()
	}
}

// resync enqueues every object of the primary types once in each period, spread over a quarter of
// it, so that no burst of reconciles delays an event.
func (c *Loop[K]) resync(ctx context.Context) {
	for sleep.For(ctx.Done(), c.config.Clock, c.config.ResyncPeriod) {
		for _, p := range c.primary {
			if err := c.resyncAll(p); err != nil { // events and the next resync enqueue them
				klog.FromContext(ctx).Error(err, "resync is left out")
			}
		}
	}
}

// resyncAll enqueues the objects of one type that the predicates would accept as new objects.
func (c *Loop[K]) resyncAll(p primary[K]) error {
	objects, err := c.accepted(p)
	if err != nil {
		return err
	}
	for o := range objects {
		wait := rand.N(c.config.ResyncPeriod/4 + 1) //nolint:gosec // jitter needs no secret
		c.queue.AddAfter(p.key(o.Ref()), wait, queue.Resync,
			queue.Cause{Kind: queue.CauseResync, At: c.config.Clock.Now()})
	}
	return nil
}

// accepted returns the objects of one type that the predicates would accept as new objects.
func (c *Loop[K]) accepted(p primary[K]) (iter.Seq[*object.Object], error) {
	v, err := c.Reader().View(p.resource)
	if err != nil {
		return nil, err
	}
	accepts := func(o *object.Object) bool {
		return p.accepts(cache.Event{Type: cache.Added, Resource: p.resource, New: o, Initial: true})
	}
	return v.List("").Where(accepts).All(), nil
}

// Trigger enqueues the objects of the primary types for which match returns true, all of them if
// match is nil, and returns their number. It fails with a *view.Error if the objects of a primary
// type are not known.
func (c *Loop[K]) Trigger(match func(*object.Object) bool, p queue.Priority, reason string) (int, error) {
	n := 0
	for _, of := range c.primary {
		objects, err := c.accepted(of)
		if err != nil {
			return n, err
		}
		for o := range objects {
			if match == nil || match(o) {
				c.Enqueue(of.key(o.Ref()), p, queue.Cause{Kind: queue.CauseTrigger, Reason: reason})
				n++
			}
		}
	}
	return n, nil
}

// Sample returns the key of a random object of the primary types for which except returns false. It
// reports whether there is one among the objects that are known.
func (c *Loop[K]) Sample(except func(K) bool) (sample K, found bool) {
	n := 0
	for _, p := range c.primary {
		objects, err := c.accepted(p)
		if err != nil {
			continue // a sample is taken of the objects that are known
		}
		for o := range objects {
			key := p.key(o.Ref())
			if except(key) {
				continue
			}
			n++
			if rand.N(n) == 0 { //nolint:gosec // a sample needs no secret
				sample = key
				found = true
			}
		}
	}
	return sample, found
}
