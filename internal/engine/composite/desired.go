package composite

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/plan"
)

// Questions is one question: to the finalize hook while the parent leaves, else to the sync hook.
// During a rolling update it is one for each live revision of the parent, the latest first. There
// are none where nothing is to be reconciled.
func (s *Shape) Questions(o *plan.Observed) []*hook.Question {
	if o.SkipChildren {
		return nil
	}
	q := &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: s.object, Parent: o.Parent}
	if o.Finalizing {
		q.Op = hook.Finalize
	}
	for _, d := range s.declared {
		q.Children = append(q.Children, hook.Group{Resource: d.Resource, Objects: o.Children.Of(d.Resource.GVK)})
	}
	if o.Revisions == nil {
		return []*hook.Question{q}
	}
	var questions []*hook.Question
	for i, parent := range o.Revisions.Parents {
		switch {
		case i == 0: // as prepared
			questions = append(questions, q)
		case parent != nil:
			older := *q
			older.Parent, older.PreviousRevision = parent, true
			questions = append(questions, &older)
		}
	}
	return questions
}

// Desired validates the answers, stamps their children and merges them. The latest revision's
// status replaces the parent's, with observedGeneration put in (compatibility: composite status).
func (s *Shape) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	o, answer := in.Observed, answers[0]
	children, err := plan.Children(in, answer)
	if err != nil {
		return nil, err
	}
	status, err := s.status(o.Parent, answer)
	if err != nil {
		return nil, err
	}
	desired := &plan.Desired{Children: children, Status: status, MarkSynced: s.ownsStatus()}
	if desired.Conditions, err = plan.Conditions(answer); err != nil {
		return nil, err
	}
	if desired.Events, err = plan.Events(answer); err != nil {
		return nil, err
	}
	finalized := o.Finalizing
	for _, a := range answers {
		finalized = finalized && a.Finalized
		if a.ResyncAfter > 0 && (desired.ResyncAfter == 0 || a.ResyncAfter < desired.ResyncAfter) {
			desired.ResyncAfter = a.ResyncAfter
		}
	}
	if finalized {
		desired.RemoveFinalizer = s.rules.Finalizer
	}
	if o.Revisions == nil {
		return desired, nil
	}
	return desired, s.roll(in, answers, desired)
}
