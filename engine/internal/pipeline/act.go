package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/plan"
)

// prepare carries out the writes that must come before the question (claims, the finalizer). It
// returns the observed state with the server's answers.
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
			prepared.Parent = outcome.Object
			r.parent = outcome.Object
		case outcome.Action.Verb == plan.Adopt || outcome.Action.Verb == plan.Tag:
			prepared.Children = prepared.Children.With(outcome.Object)
		}
	}
	return &prepared, joined(faults)
}

// act writes the children, stage by stage. It remembers the converged ones.
func (r *run) act(ctx context.Context, result plan.Result) error {
	r.state.converged = result.Converged
	if result.Len() == 0 {
		return nil
	}
	ctx, span := r.Tracer.Start(ctx, "act")
	defer span.End()
	if r.item.Key.Part != "" { // most parts have one write: those of many parts are under way together
		loop.OnlyWrites(ctx, min(result.Len(), act.Parallel), act.Parallel)
	}
	for _, stage := range [][]plan.Action{result.First, result.Actions, result.Last} {
		if err := r.stage(ctx, stage); err != nil {
			return err
		}
	}
	return nil
}

// stage carries out actions that do not depend on each other's success.
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
	return joined(faults)
}

// joined joins the faults of several writes, sorted by their texts: hooks may return children in
// another order each time, and the message of a condition should stay.
func joined(faults []error) error {
	slices.SortStableFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// write carries out actions. Every write of a sync except that of the status goes through it, so
// that none passes an open circuit.
func (r *run) write(ctx context.Context, actions []plan.Action) ([]act.Outcome, error) {
	values := func(f circuit.Field) diff { return actionDiff(f, actions, r.parent, r.children) }
	if err := r.checkCircuit(ctx, rewrites(actions), values); err != nil {
		return nil, err
	}
	outcomes := r.Writer.All(ctx, actions)
	var done []plan.Action
	for _, o := range outcomes {
		r.observeWrite(o)
		r.noteWrite(o)
		r.recordWarnings(ctx, o)
		if o.Err == nil && (o.Action.Verb != plan.Delete || o.Object == nil) {
			done = append(done, o.Action)
		}
	}
	r.countRewrites(rewrites(done))
	return outcomes, nil
}

// noteWrite counts one write, and remembers the child that it made converged.
func (r *run) noteWrite(o act.Outcome) {
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
	converged, err := plan.AfterWrite(o.Action, o.Object)
	if err != nil { // the next sync compares the child again
		return
	}
	if r.state.converged == nil {
		r.state.converged = plan.NewConverged(0)
	}
	r.state.converged.Set(o.Action.Ref, converged)
}
