package pipeline

import (
	"context"
	"errors"
	"hash/maphash"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"k8s.io/klog/v2"
)

// refusal returns the error that an answer reports itself; nil if it reports none. Name is the
// hook's.
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

// recordedEvents remembers what the last answer had recorded, so that the next one does not repeat
// it.
type recordedEvents struct {
	// hashes are those of the last answer's events.
	hashes map[uint64]bool
	// intercept is who answered in place of the controller's hook; empty if the hook did.
	intercept string
}

// recordEvents records the events of an answer, except those that the last answer had too.
func (r *run) recordEvents(ctx context.Context, events []plan.Event) {
	var recorded map[uint64]bool
	for _, e := range events {
		hash := maphash.Comparable(eventsSeed, e)
		if !r.state.events.hashes[hash] && !recorded[hash] {
			r.record(ctx, e)
		}
		if recorded == nil {
			recorded = make(map[uint64]bool, len(events))
		}
		recorded[hash] = true
	}
	r.state.events.hashes = recorded
}

// eventsSeed is the seed of the hashes of events.
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

// noteIntercept records an Event on the parent when an intercept of the controller's hook begins or
// ends.
func (r *run) noteIntercept(ctx context.Context, by string) {
	before := r.state.events.intercept
	r.state.events.intercept = by
	switch by {
	case before:
	case "":
		r.Events.Normal(ctx, r.parent, "InterceptEnded", "The controller's hook answers again, in place of "+before)
	default:
		r.Events.Normal(ctx, r.parent, "Intercepted", by+" answers in place of the controller's hook")
	}
}
