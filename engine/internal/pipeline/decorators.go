package pipeline

import (
	"context"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
)

// Refresher forgets what it has been answered about a key (package customize).
type Refresher interface {
	Refresh(key hook.Key)
}

// Refreshing makes the customize hook be asked again at each periodic resync and when a failed sync
// is tried again. Without it, a wrong answer of that hook would stay until the parent changes.
func Refreshing(next loop.Reconciler[hook.Key], related Refresher) loop.Reconciler[hook.Key] {
	return refreshing{next, related}
}

type refreshing struct {
	loop.Reconciler[hook.Key]
	related Refresher
}

// Reconcile syncs one parent.
func (r refreshing) Reconcile(ctx context.Context, item queue.Item[hook.Key]) (loop.Result, error) {
	if item.Caused(queue.CauseResync) || item.Attempt > 0 {
		r.related.Refresh(item.Key)
	}
	return r.Reconciler.Reconcile(ctx, item)
}

// Parted is told when the syncs of a parent's parts begin and end (package mapping).
type Parted interface {
	// Tracker returns the tracker of the parents.
	Tracker() *parts.Tracker
	// Begin notes that a sync begins.
	Begin(queue.Item[hook.Key])
	// End notes the result of the sync of a part.
	End(r view.Reader, key hook.Key, gone bool, result parts.Result)
}

// Beginning tells a shape when a sync begins. It also puts off the sync of a part that would only
// show what the part's last sync has written, as long as other parts of the parent wait for their
// first sync of a round. Use [Pipeline.IsEcho] for echoes.
func Beginning(
	next loop.Reconciler[hook.Key], shape Parted, echoes func(queue.Item[hook.Key]) bool,
) loop.Reconciler[hook.Key] {
	return beginning{next, shape, echoes}
}

type beginning struct {
	loop.Reconciler[hook.Key]
	shape  Parted
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

// Ending tells a shape when the sync of a part has ended, before next records it.
func Ending(next Recorder, shape Parted, reader view.Reader) Recorder {
	return ending{next, shape, reader}
}

type ending struct {
	Recorder
	shape  Parted
	reader view.Reader
}

// Synced records one sync.
func (e ending) Synced(name string, o Outcome) {
	if o.Key.Part != "" {
		e.shape.End(e.reader, o.Key, o.Result == Gone, partResult(o))
	}
	e.Recorder.Synced(name, o)
}

// partResult returns the result of a sync for the tracker.
func partResult(o Outcome) parts.Result {
	r := parts.Result{
		Fault: o.Fault, Postponed: o.Err != nil && o.Fault == "", Converged: o.Converged, Finalized: o.Finalized,
	}
	if o.Fault != "" {
		r.Reason = o.Result
		r.Message = report.Shorten(o.Err.Error(), report.MaxMessage)
	}
	return r
}
