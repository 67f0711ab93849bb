// Package pipeline runs one sync: observe → ask → plan → act → report. It is the only place in
// which the stages meet. It holds their spans and the one table that turns an error into backoff,
// Event and condition.
//
// The pipeline knows no kind of controller: kinds differ in their shape.Shape. It reads the cache
// and asks hooks; it writes through packages act and report. A Pipeline is safe for concurrent use
// by the workers of its controller. Its stages have unit tests with a fake API server; the whole is
// tested against a real one (test/integration).
package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/types"
)

// Pipeline syncs the parents of one controller, each by a run of its own. Make one with [New], let
// a loop call Reconcile for each key, and call Close at the end.
type Pipeline struct {
	Config
	states *states
	// rejectsConditions has the parents' resources with a schema that rejects the engine's optional
	// conditions.
	rejectsConditions sync.Map
}

var _ loop.Reconciler[hook.Key] = (*Pipeline)(nil)

// New returns a Pipeline. Close ends it.
func New(s Config) *Pipeline { return &Pipeline{Config: s, states: newStates(s.Account)} }

// Close ends the pipeline's account of memory. No sync may be running.
func (p *Pipeline) Close() { p.states.account.Close() }

// Reconcile runs one sync of item's parent: span, recovery, report and outcome on every path. The
// returned error asks for a retry with backoff. A fault that waits for a change is reported, and
// returns no error.
func (p *Pipeline) Reconcile(ctx context.Context, item queue.Item[hook.Key]) (loop.Result, error) {
	started := p.Clock.Now()
	held := p.states.hold(item.Key)
	defer p.states.giveBack(held)
	if held.fault.isOnlyCause(item) || held.hasAskedAll(item) {
		p.Recorder.Synced(p.Name, Outcome{
			Key: item.Key, Waited: item.Waited, Result: "echo", OpenCircuits: p.states.openCircuits(),
		})
		return loop.Result{Skipped: true}, nil
	}
	run := &run{Pipeline: p, item: item, resource: p.resource(item.Key), state: &held.parentState}
	err := run.find()
	ctx = run.begin(ctx)
	if err == nil {
		err = run.recovered(ctx)
	}
	run.state.asked.answered = run.asked && err == nil
	verdict := run.judge(ctx, err)
	work := run.work(verdict)
	run.end(verdict)
	run.notify(verdict, err, p.Clock.Since(started))
	p.Recorder.Synced(p.Name, Outcome{
		Key:           item.Key,
		Result:        verdict.result,
		Err:           err,
		Asked:         run.asked,
		StatusDropped: run.tally.statusDropped,
		AnswersStatus: run.tally.answersStatus,
		Duration:      p.Clock.Since(started),
		Waited:        item.Waited,
		Tripped:       run.tally.tripped,
		OpenCircuits:  p.states.setOpen(held),
		Fault:         verdict.fault,
		Converged:     err == nil && (run.tally.converged || run.tally.gone),
		Finalized:     err == nil && run.tally.finalized,
		Work:          work,
	})
	if !run.tally.gone {
		p.forgetAgain(held)
	}
	return verdict.next, verdict.retry
}

// IsEcho reports whether the only causes of a sync are events of children in the versions that the
// key's last sync has written, or has found as desired. The caller has the item from the queue.
func (p *Pipeline) IsEcho(item queue.Item[hook.Key]) bool {
	state := p.states.find(item.Key)
	if state == nil || item.Attempt > 0 || item.Count == 0 || item.Count > len(item.Causes) {
		return false
	}
	return !slices.ContainsFunc(item.Causes, func(c queue.Cause) bool {
		known := state.converged.At(c.Ref).Version
		return c.Kind != queue.CauseChild || c.Deleted || known == 0 || known != plan.VersionOf(c.ResourceVersion)
	})
}

// resource returns the parents' resource that a key belongs to.
func (p *Pipeline) resource(key hook.Key) object.Resource {
	i := slices.IndexFunc(p.Parents, func(r object.Resource) bool { return r.GVK == key.Parent.GVK })
	return p.Parents[i]
}

// forget drops everything about a key: here and at the holders. The key of a whole parent drops its
// parts, too, and the state of the hooks, which hold it by parent.
func (p *Pipeline) forget(key hook.Key, parent types.UID) {
	p.drop(key)
	if key.Part == "" {
		p.forgetParts(key.Parent)
	}
	p.forgetAtHooks(parent, key.Part)
}

// forgetParts drops everything about the parts of a parent.
func (p *Pipeline) forgetParts(parent object.Ref) {
	for _, part := range p.states.partsOf(parent) {
		p.drop(part)
	}
}

// drop drops everything about one key here and at the holders.
func (p *Pipeline) drop(key hook.Key) {
	p.states.forget(key)
	for _, h := range p.Holders {
		h.Forget(key)
	}
}

// forgetAgain drops a part that was forgotten with its parent while it was being synced: the sync
// may have added to the state of a holder since, about the part or its parent.
func (p *Pipeline) forgetAgain(held *keyState) {
	key := held.key
	if key.Part == "" || !p.states.isForgotten(held) {
		return
	}
	p.drop(key)
	if parent := hook.ParentKey(key.Parent); p.states.find(parent) == nil {
		p.drop(parent)
	}
	p.forgetAtHooks(held.uid, key.Part)
}

// forgetAtHooks makes the hooks drop what they hold about a part or, if part is empty, about the
// whole parent; an empty UID is no parent.
func (p *Pipeline) forgetAtHooks(parent types.UID, part string) {
	for _, h := range p.Hooks {
		if h.Forget != nil && parent != "" {
			h.Forget(parent, part)
		}
	}
}

// run holds the state of one sync from its begin to its report. Stages pass what the next stage
// needs as values (see sync). The fields are for what many stages need, and for what the sync
// reports at its end, also if a stage fails.
type run struct {
	*Pipeline
	item     queue.Item[hook.Key]
	resource object.Resource
	state    *parentState
	span     trace.Span
	change   change.ID
	// provisional reports that the trace is exported only if the sync writes something or fails.
	provisional bool
	// found is the parent in the view when the sync begins; nil if it is gone, or if the view is
	// not known.
	found *object.Object
	// parent is the observed parent; nil until observe has found it.
	parent *object.Object
	// children are the observed ones.
	children view.Set
	// ignoreCircuit lets the sync write even if the circuit is open.
	ignoreCircuit bool
	asked         bool
	// hook names the hook that was asked last, for errors about its answer.
	hook   string
	tally  tally
	seen   observation
	resync time.Duration
}

// tally counts what a sync did. The stages add to it; its span and its outcome show it.
type tally struct {
	children, writes, unchanged, pending, held, waiting int
	// calls counts the calls of hooks, and asking is how long they took; changed is their reason.
	calls   int
	asking  time.Duration
	changed hook.Changed
	// rewrites counts the fields that were to be rewritten; tripped is the one that opened the
	// circuit.
	rewrites int
	tripped  *circuit.Field
	// spared counts the objects that were not deleted because of a dry run.
	spared                                        int
	gone, converged, statusDropped, answersStatus bool
	// finalized reports that the parent needs its finalizer no longer because of this key.
	finalized bool
}

// find looks up the parent. If it has replaced another one of its name, the earlier one is
// forgotten. The error is a *view.Error if the parents are not known.
func (r *run) find() error {
	parents, err := r.Reader.View(r.resource)
	if err != nil {
		return err
	}
	key := r.item.Key.Parent
	r.found = parents.Get(key.Namespace, key.Name)
	if r.found == nil {
		return nil
	}
	if earlier := r.state.setParent(r.found.UID()); earlier != "" && !r.isPart() {
		r.forgetAtHooks(earlier, "")
		r.forgetParts(key)
	}
	return nil
}

// isPart reports whether the key is a part of a parent. The sync of a part writes neither status
// nor finalizer of the parent: those belong to the key of the whole parent.
func (r *run) isPart() bool { return r.item.Key.Part != "" }

// ownsStatus reports whether the sync may write the whole status of the parent.
func (r *run) ownsStatus() bool { return r.OwnsStatus && !r.isPart() }

// recovered runs the sync and turns a panic into an error, with the stack in the log.
func (r *run) recovered(ctx context.Context) (err error) {
	defer func() {
		if panicked := (*panics.Error)(nil); errors.As(err, &panicked) {
			err = fmt.Errorf("internal error: %w", panicked)
		}
	}()
	defer panics.Recover(ctx, &err, "panic in sync")
	return r.sync(ctx)
}
