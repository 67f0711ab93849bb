package composite

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
	"github.com/hookloop/hookloop/internal/engine/plan"
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

// shared merges an answered status into the parent's, and conditions by their types.
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

// byType merges conditions into others of the same type. It appends those of a new type.
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

// conditionType returns a condition's type; nil if c is not a condition.
func conditionType(c any) any {
	m, _ := c.(map[string]any)
	name, ok := m["type"].(string)
	if !ok {
		return nil
	}
	return name
}
