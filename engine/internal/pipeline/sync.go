package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"go.opentelemetry.io/otel/attribute"
)

// sync runs the stages. It is the pipeline's table of contents; kinds of controllers differ only in
// their Shape.
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
	observed, err = r.prepare(ctx, observed)
	if err != nil {
		return err
	}
	questions := r.Shape.Questions(observed)
	if len(questions) == 0 && observed.SkipChildren {
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
		return errors.Join(err, r.reportFaultInStatus(ctx, observed, desired, err))
	}
	return r.report(ctx, observed, desired, result)
}

// observe reads the parent and its objects. It returns nil if the parent is gone.
func (r *run) observe(ctx context.Context) (*plan.Observed, error) {
	_, span := r.Tracer.Start(ctx, "observe")
	defer span.End()
	observed, err := r.Shape.Observe(shape.Input{Reader: r.Reader, Key: r.item.Key, Owned: &r.state.owned})
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
	r.parent = observed.Parent
	r.children = observed.Children
	r.tally.children = observed.Children.Len()
	span.SetAttributes(attribute.Int("hookloop.children.observed", observed.Children.Len()))
	return observed, nil
}

// ask asks the hooks, one question after the other in the shape's order. There may be no question.
func (r *run) ask(ctx context.Context, questions []*hook.Question) ([]*hook.Answer, error) {
	answers := make([]*hook.Answer, 0, len(questions))
	r.setChanged(questions)
	for _, q := range questions {
		h, ok := r.Hooks[q.Op]
		if !ok {
			return nil, fmt.Errorf("no %s hook is declared", q.Op)
		}
		r.asked = true
		r.hook = string(q.Op) + " " + h.Address
		started := r.Clock.Now()
		answer, err := askOne(ctx, h, q)
		r.observeAnswer(q.Op, started)
		if err == nil {
			err = refusal(r.hook, answer)
		}
		if err != nil {
			return nil, err
		}
		answers = append(answers, answer)
		if !q.PreviousRevision {
			r.noteIntercept(ctx, answer.Intercept)
			r.state.circuit.answered(answer.AnsweredBy)
		}
	}
	return answers, nil
}

// askOne asks one question. While the hook takes long, another sync may use this one's worker.
func askOne(ctx context.Context, h hook.Hook, q *hook.Question) (*hook.Answer, error) {
	defer loop.Wait(ctx, q.Size)()
	return h.Ask(ctx, q)
}

// plan validates and merges the answers, and decides the writes.
func (r *run) plan(
	ctx context.Context, observed *plan.Observed, answers []*hook.Answer,
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
	r.tally.unchanged = result.Unchanged
	r.tally.pending = result.Pending
	r.tally.held = result.HeldBack
	r.tally.waiting = result.Waiting
	r.tally.finalized = result.RemoveFinalizer != ""
	r.addPlanResult(desired, result)
	span.SetAttributes(attribute.Int("hookloop.children.desired", len(desired.Children)),
		attribute.Int("hookloop.actions", result.Len()))
	return desired, result, nil
}

// addPlanResult adds the plan's own results to the desired state of the parent: its conditions or,
// if the parent's status is not this controller's, Events and lines of the log.
func (r *run) addPlanResult(desired *plan.Desired, result plan.Result) {
	desired.RemoveFinalizer = result.RemoveFinalizer
	if r.ownsStatus() && desired.Status != nil {
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

// invalid returns the error about an answer that is rejected. Without an answer, the error is the
// engine's own.
func (r *run) invalid(err error) error {
	if !r.asked {
		return err
	}
	return &hook.Error{Kind: hook.Invalid, Hook: r.hook, Err: err}
}
