package supervisor

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
)

// partQueue is the queue of a controller for its tracker.
type partQueue struct {
	run *loop.Loop[hook.Key]
}

// Part implements parts.Queue.
func (q partQueue) Part(key hook.Key) {
	q.run.Enqueue(key, queue.Resync, queue.Cause{Kind: queue.CauseParent})
}

// Parent implements parts.Queue.
func (q partQueue) Parent(key hook.Key, after time.Duration) {
	q.run.EnqueueAfter(key, after, queue.Child, queue.CauseRequeue)
}

// beginning notes the begin of each sync. It defers the syncs of parts that show only what their
// last one has written, while other parts of the parent wait for their first sync of a round.
type beginning struct {
	loop.Reconciler[hook.Key]
	shape  observe.PartedShape
	echoes func(queue.Item[hook.Key]) bool
}

// Reconcile syncs one key.
func (b beginning) Reconcile(ctx context.Context, item queue.Item[hook.Key]) (loop.Result, error) {
	if item.Key.Part != "" && b.echoes(item) && b.shape.Tracker().Defer(item.Key) {
		return loop.Result{Skipped: true}, nil
	}
	b.shape.Begin(item)
	return b.Reconciler.Reconcile(ctx, item)
}

// ending notes the end of the syncs of parts, and passes it on.
type ending struct {
	pipeline.Recorder
	shape  observe.PartedShape
	reader view.Reader
}

// Synced records one sync.
func (e ending) Synced(name string, o pipeline.Outcome) {
	if o.Key.Part != "" {
		e.shape.End(e.reader, o.Key, o.Result == pipeline.Gone, resultOf(o))
	}
	e.Recorder.Synced(name, o)
}

// resultOf returns the result of a sync for the tracker.
func resultOf(o pipeline.Outcome) parts.Result {
	r := parts.Result{
		Fault: o.Fault, Postponed: o.Err != nil && o.Fault == "", Converged: o.Converged, Finalized: o.Finalized,
	}
	if o.Fault != "" {
		r.Reason, r.Message = o.Result, report.Shorten(o.Err.Error(), report.MaxMessage)
	}
	return r
}
