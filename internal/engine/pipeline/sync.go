package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"go.opentelemetry.io/otel/attribute"
)

// sync is the pipeline's table of contents. What makes kinds of controller different is in the
// Shape.
func (r *run) sync(ctx context.Context) error {
	ctx, release := hook.Holding(ctx)
	defer release()
	observed, err := r.observe(ctx)
	if err != nil || observed == nil {
		return err
	}
	if err := r.admit(observed); err != nil {
		return err
	}
	if observed, err = r.prepare(ctx, observed); err != nil {
		return err
	}
	questions := r.Shape.Questions(observed)
	if len(questions) == 0 {
		return nil
	}
	answers, err := r.ask(ctx, questions)
	if err != nil {
		return err
	}
	desired, result, err := r.plan(ctx, observed, answers)
	if err != nil {
		return err
	}
	r.recordEvents(ctx, desired.Events)
	if err := r.restoreWarnings(observed.Parent); err != nil {
		return err
	}
	err = r.act(ctx, result)
	r.reportWarnings(desired)
	if err != nil {
		return errors.Join(err, r.reportBesides(ctx, observed, desired, err))
	}
	return r.report(ctx, observed, desired, result)
}

// observe takes the snapshot; nil where the parent is gone.
func (r *run) observe(ctx context.Context) (*plan.Observed, error) {
	_, span := r.Tracer.Start(ctx, "observe")
	defer span.End()
	observed, err := r.Shape.Observe(r.Reader, r.item.Key, &r.state.owned)
	if err != nil {
		r.parent = r.found
		return nil, err
	}
	if observed == nil {
		r.tally.gone = true
		return nil, nil
	}
	if err := observed.Check(); err != nil {
		r.parent = r.found
		return nil, err
	}
	r.parent, r.children = observed.Parent, observed.Children
	r.tally.children = observed.Children.Len()
	span.SetAttributes(attribute.Int("hookloop.children.observed", observed.Children.Len()))
	return observed, nil
}

// prepare carries out what must hold before the hook is asked (claims, the finalizer) and returns
// the snapshot with the server's answers in it.
func (r *run) prepare(ctx context.Context, observed *plan.Observed) (*plan.Observed, error) {
	if len(observed.Prepare) == 0 {
		return observed, nil
	}
	ctx, span := r.Tracer.Start(ctx, "act")
	defer span.End()
	prepared := *observed
	outcomes, err := r.write(ctx, observed.Prepare)
	if err != nil {
		return nil, err
	}
	var faults []error
	for _, outcome := range outcomes {
		switch {
		case outcome.Err != nil:
			faults = append(faults, outcome.Err)
		case outcome.Action.Ref == observed.Parent.Ref():
			prepared.Parent, r.parent = outcome.Object, outcome.Object
		case outcome.Action.Verb == plan.Adopt:
			prepared.Children = prepared.Children.With(outcome.Object)
		}
	}
	return &prepared, errors.Join(faults...)
}

// ask puts the questions to their hooks, one after the other; their order is the shape's.
func (r *run) ask(ctx context.Context, questions []*hook.Question) ([]*hook.Answer, error) {
	answers := make([]*hook.Answer, 0, len(questions))
	for _, q := range questions {
		h, ok := r.Hooks[q.Op]
		if !ok {
			return nil, fmt.Errorf("no %s hook is declared", q.Op)
		}
		r.asked, r.hook = true, string(q.Op)+" "+h.Address
		answer, err := askOne(ctx, h, q)
		if err == nil {
			err = refusal(r.hook, answer)
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
		if !q.PreviousRevision {
			r.noteIntercept(ctx, answer.Intercept)
		}
	}
	return answers, nil
}

// askOne puts one question. Where the hook takes long, another sync has this one's worker
// meanwhile.
func askOne(ctx context.Context, h hook.Hook, q *hook.Question) (*hook.Answer, error) {
	defer controller.Wait(ctx, q.Size)()
	return h.Ask(ctx, q)
}

// plan validates and merges the answers, and decides what to write.
func (r *run) plan(
	ctx context.Context,
	observed *plan.Observed,
	answers []*hook.Answer,
) (*plan.Desired, plan.Result, error) {
	_, span := r.Tracer.Start(ctx, "plan")
	defer span.End()
	in := plan.Input{
		Observed: observed, Converged: r.state.converged, Previous: &r.state.previous, Apply: r.Apply,
	}
	desired, err := r.Shape.Desired(in, answers)
	if err != nil {
		return nil, plan.Result{}, r.invalid(err)
	}
	result, err := plan.Make(in, desired)
	if err != nil {
		return nil, plan.Result{}, r.invalid(err)
	}
	if err := plan.Guard(r.DeletionLimit, observed, result); err != nil {
		return nil, plan.Result{}, err
	}
	r.tally.unchanged, r.tally.pending, r.tally.held, r.tally.waiting = result.Unchanged, result.Pending, result.Held, result.Waiting
	r.amend(desired, result)
	span.SetAttributes(
		attribute.Int("hookloop.children.desired", len(desired.Children)),
		attribute.Int("hookloop.actions", result.Len()),
	)
	return desired, result, nil
}

// amend puts into what is desired of the parent what the plan itself has to say: on the parent, or
// in an Event or the log if it has no status of ours.
func (r *run) amend(desired *plan.Desired, result plan.Result) {
	desired.RemoveFinalizer = result.RemoveFinalizer
	if r.OwnsStatus && desired.Status != nil {
		desired.Conditions = append(desired.Conditions, result.Conditions...)
		return
	}
	for _, c := range result.Conditions {
		if c.Type == plan.ChangesHeldBack {
			desired.Events = append(desired.Events, plan.Event{Reason: c.Type, Message: c.Message})
			continue
		}
		desired.Events = append(desired.Events, plan.Event{LogOnly: true, Reason: c.Reason, Message: c.Message})
	}
}

// invalid names the hook whose answer is refused.
func (r *run) invalid(err error) error {
	return &hook.Error{Kind: hook.Invalid, Hook: r.hook, Err: err}
}

// act writes the children, stage by stage. What was found or made converged is remembered.
func (r *run) act(ctx context.Context, result plan.Result) error {
	r.state.converged = result.Converged
	if result.Len() == 0 {
		return nil
	}
	ctx, span := r.Tracer.Start(ctx, "act")
	defer span.End()
	for _, stage := range [][]plan.Action{result.First, result.Actions, result.Last} {
		if err := r.stage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// stage carries out actions that need not wait for each other's success.
func (r *run) stage(ctx context.Context, actions []plan.Action) error {
	outcomes, err := r.write(ctx, actions)
	if err != nil {
		return err
	}
	var faults []error
	for _, outcome := range outcomes {
		if outcome.Err != nil {
			faults = append(faults, outcome.Err)
		}
		if collected := (*act.CollectedError)(nil); errors.As(outcome.Err, &collected) {
			r.Events.Normal(ctx, r.parent, "OrphanDeleted", collected.Error())
		}
	}
	return errors.Join(faults...)
}

// wrote takes one write into account: the tally, and what its answer settles.
func (r *run) wrote(o act.Outcome) {
	r.tally.writes++
	if o.Err != nil && o.Object == nil {
		return
	}
	if o.Action.Verb == plan.Delete && o.Object != nil {
		r.tally.spared++
	}
	if o.Object == nil || o.Action.Desired == 0 {
		return
	}
	if settled, err := plan.AfterWrite(o.Action, o.Object); err == nil {
		r.state.setConverged(o.Action.Ref, settled)
	}
}

// report writes the parent: labels and annotations, status, or the removal of the finalizer. A sync
// that changes metadata leaves the status to the sync that this brings, so that a parent is written
// at most once in each; if the server reverts the metadata, there is no such sync. One that removes
// the finalizer is the last.
func (r *run) report(ctx context.Context, observed *plan.Observed, desired *plan.Desired, result plan.Result) error {
	ctx, span := r.Tracer.Start(ctx, "report")
	defer span.End()
	r.resync = desired.ResyncAfter
	if r.tally.spared > 0 {
		r.resync = time.Millisecond // no event tells what has been learnt, and a rolling update may wait for it
	}
	r.tally.converged = result.Len() == 0 && result.Pending == 0 && result.Waiting == 0 && len(observed.Prepare) == 0
	last := desired.RemoveFinalizer != ""
	if !last {
		written, err := r.decorate(ctx, observed.Parent, desired)
		if err != nil || written != nil && written.ResourceVersion() != observed.Parent.ResourceVersion() {
			return err
		}
	}
	if !last || !r.OwnsStatus {
		if err := r.reportStatus(ctx, observed.Parent, desired); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	_, err := r.decorate(ctx, r.parent, desired)
	return err
}

// decorate patches the parent's labels and annotations and removes the finalizer, unless that has
// been tried and nothing has changed since. It returns the server's answer, or nil if nothing was
// written.
func (r *run) decorate(ctx context.Context, parent *object.Object, desired *plan.Desired) (*object.Object, error) {
	a := plan.Action{
		Verb:            plan.PatchMetadata,
		Resource:        r.resource,
		Ref:             parent.Ref(),
		UID:             parent.UID(),
		ResourceVersion: parent.ResourceVersion(),
		Labels: plan.Patch(
			parent.Labels(),
			desired.Labels,
		),
		Annotations: plan.Patch(parent.Annotations(), desired.Annotations),
		Why:         "the hook wants other labels or annotations",
	}
	if desired.RemoveFinalizer != "" {
		a.Finalizer, a.Why = desired.RemoveFinalizer, "the finalize hook has finished"
	}
	if a.Finalizer == "" && (a.Labels == nil && a.Annotations == nil || r.state.decorationTried(parent, desired)) {
		return nil, nil
	}
	r.state.decoratedKeys = keysOf(desired)
	outcomes, err := r.write(ctx, []plan.Action{a})
	if err != nil {
		return nil, err
	}
	outcome := outcomes[0]
	if outcome.Err != nil {
		return nil, outcome.Err
	}
	r.state.triedDecoration(outcome.Object, desired)
	return outcome.Object, nil
}
