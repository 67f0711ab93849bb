package report

import (
	"context"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/plan"
	"k8s.io/utils/clock"
)

// timeFormat is that of metav1.Time.
const timeFormat = "2006-01-02T15:04:05Z"

// Condition is one entry of status.conditions, as the Kubernetes API conventions have it.
type Condition = plan.Condition

// SetCondition puts a condition into an object's status and keeps all else. Nothing is written where type, status, reason and
// message are there already; lastTransitionTime changes with the status only. It returns the server's answer, or nil where nothing was
// written.
func (s *Status) SetCondition(ctx context.Context, now clock.PassiveClock, r object.Resource, o *object.Object, c Condition) (*object.Object, error) {
	status, err := statusOf(o)
	if err != nil {
		return nil, err
	}
	changed, err := upsert(status, c, o.Generation(), now.Now().UTC().Format(timeFormat))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Ref(), err)
	}
	if !changed {
		return nil, nil
	}
	return s.Replace(ctx, r, o, status)
}

// Include puts a condition into a status that is to replace o's. Where o has the condition with the same status, its lastTransitionTime stays.
func Include(status map[string]any, now clock.PassiveClock, o *object.Object, c Condition) error {
	present, err := statusOf(o)
	if err != nil {
		return err
	}
	list, ok := status["conditions"].([]any)
	if status["conditions"] != nil && !ok {
		return fmt.Errorf("status.conditions is %T, expected a list", status["conditions"])
	}
	is := func(item any) bool { return isCondition(item, c.Type) }
	before, _ := present["conditions"].([]any)
	at, was := slices.IndexFunc(list, is), slices.IndexFunc(before, is)
	switch {
	case at >= 0 && was >= 0:
		list[at] = before[was]
	case at >= 0:
		list = slices.Delete(list, at, at+1)
	case was >= 0:
		list = append(list, before[was])
	}
	status["conditions"] = list
	_, err = upsert(status, c, o.Generation(), now.Now().UTC().Format(timeFormat))
	return err
}

// isCondition says whether an item of status.conditions is of a type.
func isCondition(item any, name string) bool {
	m, ok := item.(map[string]any)
	return ok && m["type"] == name
}

// upsert changes status in place and says whether it did.
func upsert(status map[string]any, c Condition, generation int64, now string) (bool, error) {
	moved := c.Observed && status["observedGeneration"] != generation
	if c.Observed {
		status["observedGeneration"] = generation
	}
	list, ok := status["conditions"].([]any)
	if status["conditions"] != nil && !ok {
		return false, fmt.Errorf("status.conditions is %T, expected a list", status["conditions"])
	}
	value := "False"
	switch {
	case c.Unknown:
		value = "Unknown"
	case c.Status:
		value = "True"
	}
	next := map[string]any{
		"type": c.Type, "status": value, "reason": c.Reason, "message": Shorten(c.Message, MaxMessage),
		"observedGeneration": generation, "lastTransitionTime": now,
	}
	for i, item := range list {
		if !isCondition(item, c.Type) {
			continue
		}
		present := item.(map[string]any)
		if present["status"] == value {
			next["lastTransitionTime"] = present["lastTransitionTime"]
		}
		if sameCondition(present, next) {
			return moved, nil
		}
		list[i] = next
		return true, nil
	}
	status["conditions"] = append(list, next)
	return true, nil
}

func sameCondition(a, b map[string]any) bool {
	for _, field := range []string{"status", "reason", "message", "observedGeneration"} {
		if a[field] != b[field] {
			return false
		}
	}
	return true
}
