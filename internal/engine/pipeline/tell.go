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

// tell records what a hook remarks, as far as it is news: an answer that says what the last one
// said records nothing.
func (r *run) tell(ctx context.Context, remarks []plan.Remark) {
	var told map[uint64]bool
	for _, remark := range remarks {
		hash := maphash.Comparable(remarksSeed, remark)
		if !r.remembered.told[hash] && !told[hash] {
			r.record(ctx, remark)
		}
		if told == nil {
			told = make(map[uint64]bool, len(remarks))
		}
		told[hash] = true
	}
	r.remembered.told = told
}

// remarksSeed makes the hashes of remarks differ between processes.
var remarksSeed = maphash.MakeSeed()

func (r *run) record(ctx context.Context, remark plan.Remark) {
	switch {
	case !remark.Loud:
		klog.FromContext(
			ctx,
		).Info(
			"the hook says",
			"reason",
			remark.Reason,
			"message",
			report.Shorten(remark.Message, report.MaxMessage),
		)
	case remark.Warning:
		r.Events.Warning(ctx, r.parent, remark.Reason, remark.Message)
	default:
		r.Events.Normal(ctx, r.parent, remark.Reason, remark.Message)
	}
}

// noteIntercept records on the parent that somebody else begins to answer for it in place of the
// controller's hook, or no longer does.
func (r *run) noteIntercept(ctx context.Context, by string) {
	before := r.remembered.intercept
	r.remembered.intercept = by
	switch by {
	case before:
	case "":
		r.Events.Normal(ctx, r.parent, "InterceptEnded", "The controller's hook answers again, in place of "+before)
	default:
		r.Events.Normal(ctx, r.parent, "Intercepted", by+" answers in place of the controller's hook")
	}
}
