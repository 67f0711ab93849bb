package shape

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// Question returns the question about an observed parent: for the finalize hook if the parent is
// departing, else for the sync hook. It is nil if the children are not to be reconciled. The
// controller is the declaring object.
func Question(kind hook.ControllerKind, controller *object.Object, o *plan.Observed) *hook.Question {
	if o.SkipChildren {
		return nil
	}
	q := &hook.Question{Kind: kind, Op: hook.Sync, Key: o.Key, Controller: controller, Parent: o.Parent}
	if o.Finalizing {
		q.Op = hook.Finalize
	}
	for _, kind := range o.Scope.ChildKinds {
		q.Children = append(q.Children, hook.Group{Resource: kind.Resource, Objects: o.Children.Of(kind.Resource.GVK)})
	}
	return q
}

// Desired validates and merges the parts of answers that have the same meaning for all kinds: the
// children, conditions and events of the first answer, the shortest resync of all, and the removal
// of the finalizer once all answers to a finalize hook are final. The error is a *plan.AnswerError.
func Desired(in plan.Input, answers []*hook.Answer, finalizer string) (*plan.Desired, error) {
	children, err := plan.Children(in, answers[0])
	if err != nil {
		return nil, err
	}
	desired := &plan.Desired{Children: children}
	desired.Conditions, err = plan.Conditions(answers[0])
	if err != nil {
		return nil, err
	}
	desired.Events, err = plan.Events(answers[0])
	if err != nil {
		return nil, err
	}
	finalized := in.Observed.Finalizing
	for _, a := range answers {
		finalized = finalized && a.Finalized
		if a.ResyncAfter > 0 && (desired.ResyncAfter == 0 || a.ResyncAfter < desired.ResyncAfter) {
			desired.ResyncAfter = a.ResyncAfter
		}
	}
	if finalized {
		desired.RemoveFinalizer = finalizer
	}
	return desired, nil
}
