package composite

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
)

// Questions returns one question or, during a rolling update, one for each live revision of the
// parent, the latest first. It returns none if the children are not to be reconciled.
func (s *Shape) Questions(o *plan.Observed) []*hook.Question {
	q := shape.Question(hook.Composite, s.object, o)
	switch {
	case q == nil:
		return nil
	case o.Revisions == nil:
		return []*hook.Question{q}
	}
	questions := []*hook.Question{q}
	for _, parent := range o.Revisions.Parents[1:] {
		if parent != nil {
			older := *q
			older.Parent = parent
			older.PreviousRevision = true
			questions = append(questions, &older)
		}
	}
	return questions
}

// Desired validates the answers, stamps their children and merges them. The latest revision's
// status replaces the parent's, with observedGeneration added (compatibility: composite status).
func (s *Shape) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	desired, err := shape.Desired(in, answers, s.rules.Finalizer)
	if err != nil {
		return nil, err
	}
	desired.Status, err = s.status(in.Observed.Parent, answers[0])
	if err != nil {
		return nil, err
	}
	desired.MarkSynced = s.ownsStatus()
	if in.Observed.Revisions == nil {
		return desired, nil
	}
	return desired, s.roll(in, answers, desired)
}
