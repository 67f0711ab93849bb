package composite

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// ownsStatus reports whether the hook's status replaces the parents' status without a new
// generation: the parents are custom resources with a status subresource.
func (s *Shape) ownsStatus() bool { return s.rules.Resource.HasStatus && s.custom(s.rules.Resource) }

// status returns the parent's whole new status; nil leaves the status as it is.
//
// If the parents are not custom resources, their status belongs to a controller of Kubernetes. The
// answer is merged into it and gets no observedGeneration, which would be a claim of that
// controller. If the resource has no status subresource, each write of the status makes a new
// generation, so that an observedGeneration would never be up to date.
func (s *Shape) status(parent *object.Object, answer *hook.Answer) (map[string]any, error) {
	if answer.Status == nil && !s.ownsStatus() && len(answer.Conditions) == 0 {
		return nil, nil
	}
	status := map[string]any{}
	if answer.Status != nil {
		var err error
		status, err = object.DecodeMap(answer.Status)
		if err != nil {
			return nil, &plan.AnswerError{Index: -1, Item: "status", Problem: err.Error() + ", expected an object"}
		}
	}
	if !s.custom(s.rules.Resource) {
		return plan.MergeStatus(parent, status)
	}
	if s.rules.Resource.HasStatus {
		status["observedGeneration"] = parent.Generation()
	}
	return status, nil
}
