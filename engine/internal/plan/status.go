package plan

import (
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// MergeStatus returns the parent's status with an answered one merged into it, for a status that
// another controller owns. Conditions merge by their types.
func MergeStatus(parent *object.Object, answered map[string]any) (map[string]any, error) {
	present := map[string]any{}
	if raw, there := parent.Field("status"); there && string(raw) != "null" {
		var err error
		present, err = object.DecodeMap(raw)
		if err != nil {
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
