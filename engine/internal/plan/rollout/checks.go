package rollout

import (
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
)

// Checks are the conditions that a child at the latest revision must meet before the next one moves
// (updateStrategy.statusChecks).
type Checks struct {
	Conditions []ConditionCheck
	// Observed requires that the status of a child with observed generations is current. It is for
	// children that are updated in place.
	Observed bool
}

// ConditionCheck is a condition that a child's status must have. A nil Status or Reason accepts
// any.
type ConditionCheck struct {
	Type           string
	Status, Reason *string
}

// reported holds the fields of a status that the checks read.
type reported struct {
	ObservedGeneration *int64 `json:"observedGeneration"`
	Conditions         []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"conditions"`
}

// Lacks returns the first check that a child fails, in a few words; empty if it passes all. A
// status that cannot be read fails.
func (c Checks) Lacks(child *object.Object) string {
	var status reported
	if raw, ok := child.Field("status"); ok {
		if err := json.Unmarshal(raw, &status); err != nil {
			return "has a status that cannot be checked: " + err.Error()
		}
	}
	if at := status.ObservedGeneration; c.Observed && at != nil && *at < child.Generation() {
		return fmt.Sprintf("has status.observedGeneration %d, expected %d", *at, child.Generation())
	}
	for _, want := range c.Conditions {
		if lack := status.lacks(want); lack != "" {
			return lack
		}
	}
	return ""
}

func (r *reported) lacks(want ConditionCheck) string {
	for _, c := range r.Conditions {
		switch {
		case c.Type != want.Type:
			continue
		case want.Status != nil && c.Status != *want.Status:
			return fmt.Sprintf("has condition %s %q, expected %q", want.Type, c.Status, *want.Status)
		case want.Reason != nil && c.Reason != *want.Reason:
			return fmt.Sprintf("has condition %s with reason %q, expected %q", want.Type, c.Reason, *want.Reason)
		}
		return ""
	}
	return "has no condition " + want.Type
}
