package pipeline

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"k8s.io/klog/v2"
)

// refusal is the error of an answer that says itself that it is none; nil where it is one. Name is
// the hook's.
func refusal(name string, answer *hook.Answer) error {
	fatal := answer.Fatal()
	if fatal == nil {
		return nil
	}
	e := &hook.Error{
		Kind: hook.Failed,
		Hook: name,
		Err:  errors.New(report.Shorten("says: "+fatal.Message, report.MaxMessage)),
	}
	if hook.IsWord(fatal.Reason) {
		e.Reason = fatal.Reason
	}
	return e
}

// recordEvents records the events of an answer, except those that the last answer had too.
func (r *run) recordEvents(ctx context.Context, events []plan.Event) {
	var recorded map[uint64]bool
	for _, e := range events {
		hash := maphash.Comparable(eventsSeed, e)
		if !r.state.recordedEvents[hash] && !recorded[hash] {
			r.record(ctx, e)
		}
		if recorded == nil {
			recorded = make(map[uint64]bool, len(events))
		}
		recorded[hash] = true
	}
	r.state.recordedEvents = recorded
}

// eventsSeed makes the hashes of events differ between processes.
var eventsSeed = maphash.MakeSeed()

func (r *run) record(ctx context.Context, e plan.Event) {
	switch {
	case e.LogOnly:
		message := report.Shorten(e.Message, report.MaxMessage)
		klog.FromContext(ctx).Info("the hook says", "reason", e.Reason, "message", message)
	case e.Warning:
		r.Events.Warning(ctx, r.parent, e.Reason, e.Message)
	default:
		r.Events.Normal(ctx, r.parent, e.Reason, e.Message)
	}
}

// noteIntercept records on the parent that somebody else begins to answer for it in place of the
// controller's hook, or no longer does.
func (r *run) noteIntercept(ctx context.Context, by string) {
	before := r.state.intercept
	r.state.intercept = by
	switch by {
	case before:
	case "":
		r.Events.Normal(ctx, r.parent, "InterceptEnded", "The controller's hook answers again, in place of "+before)
	default:
		r.Events.Normal(ctx, r.parent, "Intercepted", by+" answers in place of the controller's hook")
	}
}
