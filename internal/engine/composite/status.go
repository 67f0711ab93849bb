package composite

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
	"github.com/hookloop/hookloop/internal/engine/plan"
)

// ownsStatus reports whether the parents' status is the hook's alone, and can be written without a
// new generation: they are custom resources with a status subresource.
func (s *Shape) ownsStatus() bool { return s.rules.Resource.HasStatus && s.custom(s.rules.Resource) }

// status returns the parent's whole new status; nil leaves the status as it is. If the parents are
// not custom resources, their status belongs to a controller of Kubernetes: the answer is merged
// into it, and has no observedGeneration, which would say that this controller has seen the
// generation. If the resource has no status subresource, a status is part of what counts as a new
// generation, so that no observedGeneration can be kept in it.
func (s *Shape) status(parent *object.Object, answer *hook.Answer) (map[string]any, error) {
	if answer.Status == nil && !s.ownsStatus() && len(answer.Conditions) == 0 {
		return nil, nil
	}
	status := map[string]any{}
	if answer.Status != nil {
		var err error
		if status, err = object.DecodeMap(answer.Status); err != nil {
			return nil, &plan.AnswerError{Index: -1, Item: "status", Problem: err.Error() + ", expected an object"}
		}
	}
	if !s.custom(s.rules.Resource) {
		return shared(parent, status)
	}
	if s.rules.Resource.HasStatus {
		status["observedGeneration"] = parent.Generation()
	}
	return status, nil
}

// shared merges an answered status into the parent's; conditions by their types.
func shared(parent *object.Object, answered map[string]any) (map[string]any, error) {
	present := map[string]any{}
	if raw, there := parent.Field("status"); there && string(raw) != "null" {
		var err error
		if present, err = object.DecodeMap(raw); err != nil {
			return nil, err
		}
	}
	merged := merge.Overlay(present, answered)
	before, wasList := present["conditions"].([]any)
	wanted, isList := answered["conditions"].([]any)
	if wasList && isList {
		merged["conditions"] = byType(before, wanted)
	}
	return merged, nil
}

// byType returns conditions with others in the places of those of the same type, or behind.
func byType(before, wanted []any) []any {
	merged := slices.Clone(before)
	for _, c := range wanted {
		same := func(other any) bool { return conditionType(c) != nil && conditionType(other) == conditionType(c) }
		if at := slices.IndexFunc(merged, same); at >= 0 {
			merged[at] = merge.Overlay(merged[at].(map[string]any), c.(map[string]any))
		} else {
			merged = append(merged, c)
		}
	}
	return merged
}

// conditionType returns a condition's type; nil if it is none.
func conditionType(c any) any {
	m, _ := c.(map[string]any)
	name, ok := m["type"].(string)
	if !ok {
		return nil
	}
	return name
}
