package loop

import (
	"context"
	"errors"
	"runtime/pprof"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/klog/v2"
)

// work runs workers, sources and resyncs until ctx is done, and waits for all of them.
func (c *Loop[K]) work(ctx context.Context) {
	var wait sync.WaitGroup
	start := func(flow string, f func(context.Context)) {
		wait.Go(func() { pprof.Do(ctx, pprof.Labels("controller", c.name, "flow", flow), f) })
	}
	// Running reconciles outlive ctx by the grace period.
	drainCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	worker := func() { start("queue → reconcile", func(ctx context.Context) { c.worker(ctx, drainCtx) }) }
	c.slots = newSlots(c.config.Workers, c.config.Waits, worker)
	for range c.config.Workers {
		worker()
	}
	for _, s := range c.sources {
		start("source → queue", func(ctx context.Context) { c.source(ctx, s) })
	}
	if c.config.ResyncPeriod > 0 {
		start("resync → queue", c.resync)
	}
	if c.config.Metrics != nil {
		start("queue → metrics", c.measure)
	}
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), ErrStopNow) {
		cancel()
	}
	c.queue.ShutDown()
	c.drain(ctx, &wait, cancel)
}

// drain waits for the running reconciles, and cancels them when the grace period is over.
func (c *Loop[K]) drain(ctx context.Context, wait *sync.WaitGroup, cancel context.CancelFunc) {
	done := make(chan struct{})
	go func() {
		wait.Wait()
		close(done)
	}()
	timer := c.config.Clock.NewTimer(c.config.GracePeriod)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
		klog.FromContext(ctx).Info("grace period is over: reconciles under way are cancelled")
		cancel()
		<-done
	}
}

// worker reconciles keys one after the other. It holds a slot, and ends if a reconcile that comes
// back needs the slot, or if its own reconcile has lent it.
func (c *Loop[K]) worker(ctx, drainCtx context.Context) {
	idle := &idleWorker{callOff: func() {}}
	defer func() { idle.callOff() }()
	held := &slot{slots: c.slots, clock: c.config.Clock}
	drainCtx = withSlot(drainCtx, held)
	for ctx.Err() == nil {
		c.turn(ctx, drainCtx, idle)
		if held.lent > 0 {
			c.slots.wrote(held.lent)
			return
		}
		if c.slots.yield() {
			return
		}
	}
	c.slots.leave()
}

// turn waits for a key and reconciles it.
func (c *Loop[K]) turn(ctx, drainCtx context.Context, idle *idleWorker) {
	resting := c.slots.rest(ctx, idle)
	done, ok := c.await(resting)
	if !ok {
		c.slots.rested(idle)
		return
	}
	defer done()
	item, ok := c.queue.Get(resting)
	c.slots.rested(idle)
	if ok {
		c.process(drainCtx, item)
	}
}

// process reconciles one key and decides when it comes again.
func (c *Loop[K]) process(ctx context.Context, item queue.Item[K]) {
	defer c.queue.Done(item.Key)
	item, ok := c.showsWrites(ctx, item)
	if !ok {
		return
	}
	result, err := c.reconcileExpecting(ctx, item)
	if err != nil {
		c.unreadable(item.Key, err)
		c.queue.Retry(item.Key, queue.Cause{Kind: queue.CauseRetry, At: c.config.Clock.Now()})
		return
	}
	if !result.Skipped {
		c.queue.Forget(item.Key)
	}
	if result.RequeueAfter > 0 {
		c.EnqueueAfter(item.Key, result.RequeueAfter, result.Priority, queue.CauseRequeue)
	}
}

// reconcileSafely calls the reconciler and turns its panic into an error.
func (c *Loop[K]) reconcileSafely(ctx context.Context, item queue.Item[K]) (r Result, err error) {
	defer panics.Recover(ctx, &err, "panic in a reconcile", "key", item.Key)
	return c.reconciler.Reconcile(ctx, item)
}
