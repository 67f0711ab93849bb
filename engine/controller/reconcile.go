package controller

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/klog/v2"
)

// The results of a reconcile, in spans and metrics.
const (
	resultDone     = "ok"
	resultConflict = "conflict"
	resultFailed   = "error"
	resultPanic    = "panic"
	resultInvalid  = "InvalidObject"
	resultCircuit  = "CircuitOpen"
)

// Reconcile implements loop.Reconciler.
func (b *built[T]) Reconcile(ctx context.Context, item queue.Item[Key]) (loop.Result, error) {
	v, err := b.view(ctx)
	if err != nil {
		klog.FromContext(ctx).Error(err, "reconcile is postponed", "key", item.Key.String())
		return loop.Result{}, err
	}
	o := v.Get(item.Key.Namespace, item.Key.Name)
	if o != nil {
		selected, err := b.selects(o)
		if err != nil {
			logResult(ctx, resultPanic, fmt.Errorf("%s: %w", o.Ref(), err))
			return loop.Result{}, err
		}
		if !selected { // not this controller's, or no longer
			b.references.Forget(item.Key)
			b.changes.forget(item.Key)
			b.forgetCircuit(item.Key)
			return loop.Result{}, nil
		}
	}
	started := b.host.Clock.Now()
	ctx, tracing := b.begin(ctx, item, o)
	pause := b.beginCircuit(item, o)
	result, writes, err := b.reconcile(ctx, item, o, pause)
	wait := pause.end(err)
	outcome := outcomeOf(err)
	logResult(ctx, outcome, err)
	failed := err != nil && outcome != resultConflict
	exported := tracing.exported(writes > 0 || err != nil)
	tracing.end(ctx, outcome, result, err)
	if b.host.Recorder != nil {
		done := host.Reconcile{
			Controller: b.name, Result: outcome, Failed: failed, Duration: b.host.Clock.Since(started), Waited: item.Waited,
			Attempt: item.Attempt, Writes: writes, Trace: exported,
		}
		if o != nil {
			done.Object, done.Generation = o.UID(), o.Generation()
		}
		b.host.Recorder.Reconciled(done)
		b.host.Recorder.Bound(b.name, b.references.Stats().References)
	}
	if errors.Is(err, ErrCircuitOpen) {
		err = nil // it comes back after the pause, not with backoff
	}
	if wait > 0 && (result.RequeueAfter <= 0 || wait < result.RequeueAfter) {
		result.RequeueAfter = wait
	}
	return loop.Result{RequeueAfter: result.RequeueAfter}, err
}

// view returns the view of the controller's type, when it shows all writes of the process to it.
func (b *built[T]) view(ctx context.Context) (view.View, error) {
	if err := b.shown(ctx, b.resource); err != nil {
		return view.View{}, err
	}
	return b.run.Reader().View(b.resource)
}

// reconcile calls the user's reconciler, and records what it has read. It returns the number of
// writes, too.
func (b *built[T]) reconcile(
	ctx context.Context, item queue.Item[Key], o *object.Object, c *circuitRun,
) (r Result, writes int, err error) {
	a := b.access
	a.reads = newReads(b.references.Begin(item.Key))
	rt := newRuntime(ctx, b.host, a, b.shown)
	rt.circuit = c
	defer func() {
		rt.end()
		writes = int(rt.writes.Load())
		a.reads.end(err != nil, o != nil)
	}()
	req := &Request[T]{Key: item.Key, Causes: item.Causes, Runtime: rt}
	if o != nil {
		req.Object, err = decodeBy[T](a.memo, o)
		if err != nil {
			b.host.Events.WarningUnlogged(o, resultInvalid, err.Error())
			return Result{}, 0, err
		}
	}
	defer panics.Recover(ctx, &err, "panic in a reconcile")
	r, err = b.reconciler.Reconcile(ctx, req)
	return r, 0, err
}

// outcomeOf returns the name of a result, out of a bounded set.
func outcomeOf(err error) string {
	var panicked *panics.Error
	var invalid *DecodeError
	switch {
	case err == nil:
		return resultDone
	case errors.Is(err, ErrConflict):
		return resultConflict
	case errors.Is(err, ErrCircuitOpen):
		return resultCircuit
	case errors.As(err, &panicked):
		return resultPanic
	case errors.As(err, &invalid):
		return resultInvalid
	}
	return resultFailed
}

// logResult logs a reconcile that has failed.
func logResult(ctx context.Context, outcome string, err error) {
	log := klog.FromContext(ctx)
	switch outcome {
	case resultDone:
		log.V(1).Info("reconciled")
	case resultConflict:
		log.V(1).Info("the object has changed: reconciled again", "cause", err.Error())
	case resultCircuit: // the opening is logged
		log.V(1).Info("nothing is written: the circuit is open", "cause", err.Error())
	default:
		log.Error(err, "reconcile failed")
	}
}
