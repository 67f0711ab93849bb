package pipeline

import (
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// Observer is notified of every sync with its writes, for commands that print them. It is called by
// the workers of all controllers, and must not block.
type Observer interface {
	Synced(Sync)
}

// Sync describes one sync. Its objects must not be changed.
type Sync struct {
	// Controller is the name of the controller: "composite/hello".
	Controller string
	Key        hook.Key
	// Causes are the first and the last few; CauseCount is how many there were.
	Causes     []queue.Cause
	CauseCount int
	// Ops are the operations that the hook was asked for, and HookTime is the time of the answers.
	Ops      []hook.Op
	HookTime time.Duration
	// Writes are the writes in their order, also those that failed.
	Writes []Write
	// Result is "converged", "changed", "gone" or, after a fault, the reason of its condition.
	Result string
	Err    error
	// Retry reports that a fault is retried without a change of the parent.
	Retry    bool
	Duration time.Duration
}

// Write is one write of a sync.
type Write struct {
	// Verb is that of the action ("create", "update", "delete"), or "status".
	Verb     string
	Resource object.Resource
	Ref      object.Ref
	// Why is the cause in a few words: "spec.replicas: 1 → 3".
	Why string
	// Before and After are the object before and after the write; nil if it did not exist, is gone,
	// or is not known.
	Before, After *object.Object
	Err           error
}

// StatusVerb is the verb of a write of the parent's status.
const StatusVerb = "status"

// observation is the part of a Sync that the stages add to.
type observation struct {
	ops    []hook.Op
	writes []Write
}

// observeAnswer records that the hook has answered, or has failed to.
func (r *run) observeAnswer(op hook.Op, started time.Time) {
	r.tally.calls++
	r.tally.asking += r.Clock.Since(started)
	if r.Observer != nil && !slices.Contains(r.seen.ops, op) {
		r.seen.ops = append(r.seen.ops, op)
	}
}

// observeWrite records the outcome of an action.
func (r *run) observeWrite(o act.Outcome) {
	if r.Observer == nil {
		return
	}
	a := o.Action
	w := Write{Verb: string(a.Verb), Resource: a.Resource, Ref: a.Ref, Why: a.Why, After: o.Object, Err: o.Err}
	switch {
	case a.Verb == plan.Create:
	case r.parent != nil && a.Ref == r.parent.Ref():
		w.Before = r.parent
	default:
		w.Before = r.children.Get(a.Ref)
	}
	r.seen.writes = append(r.seen.writes, w)
}

// observeStatus records a write of the parent's status. After is nil if nothing was written.
func (r *run) observeStatus(before, after *object.Object, err error) {
	if r.Observer == nil || after == nil && err == nil {
		return
	}
	r.seen.writes = append(r.seen.writes,
		Write{Verb: StatusVerb, Resource: r.resource, Ref: before.Ref(), Before: before, After: after, Err: err})
}

// notify notifies the Observer of the end of the sync.
func (r *run) notify(v verdict, err error, duration time.Duration) {
	if r.Observer == nil {
		return
	}
	r.Observer.Synced(Sync{
		Controller: r.Name, Key: r.item.Key, Causes: r.item.Causes, CauseCount: r.item.Count,
		Ops: r.seen.ops, HookTime: r.tally.asking, Writes: r.seen.writes,
		Result: v.result, Err: err, Retry: v.retry != nil || v.next.RequeueAfter > 0, Duration: duration,
	})
}
