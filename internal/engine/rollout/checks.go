package rollout

import (
	"encoding/json"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
)

// Checks are what a child at the latest revision must pass before the next one moves
// (updateStrategy.statusChecks).
type Checks struct {
	Conditions []Condition
	// Observed has a child that counts observed generations catch up with its own first. It is for
	// children that are updated in place.
	Observed bool
}

// Condition is a condition that a child's status must have. A nil Status or Reason takes any.
type Condition struct {
	Type           string
	Status, Reason *string
}

// reported is what the checks read of a status.
type reported struct {
	ObservedGeneration *int64 `json:"observedGeneration"`
	Conditions         []struct {
		Type   string `json:"type"`
		Status string `json:"status"`
		Reason string `json:"reason"`
	} `json:"conditions"`
}

// Lacks says in a few words which check a child fails; empty where it passes all. A status that
// cannot be read fails.
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

func (r *reported) lacks(want Condition) string {
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
