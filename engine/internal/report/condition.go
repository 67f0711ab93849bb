package report

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
)

// timeFormat is the format of metav1.Time.
const timeFormat = "2006-01-02T15:04:05Z"

// Condition is a condition of an object.
type Condition = hook.Condition

// SetCondition puts a condition into an object's status and keeps all else. It writes nothing if
// the type, status, reason, message and generation are present already. The lastTransitionTime
// changes with the status only. It returns the server's answer, or nil if it wrote nothing.
func (s *Status) SetCondition(
	ctx context.Context,
	now clock.PassiveClock,
	r object.Resource,
	o *object.Object,
	c hook.Condition,
) (*object.Object, error) {
	status, err := StatusOf(o)
	if err != nil {
		return nil, err
	}
	changed, err := upsert(status, c, Generation(r, o), now.Now().UTC().Format(timeFormat))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Ref(), err)
	}
	if !changed {
		return nil, nil
	}
	return s.Replace(ctx, r, o, status)
}

// SetConditions puts fields and conditions into an object's status in one write, like SetCondition.
func (s *Status) SetConditions(
	ctx context.Context,
	now clock.PassiveClock,
	r object.Resource,
	o *object.Object,
	fields map[string]any,
	conditions ...hook.Condition,
) (*object.Object, error) {
	status, err := StatusOf(o)
	if err != nil {
		return nil, err
	}
	changed := false
	for name, value := range fields {
		changed = changed || status[name] != value
		status[name] = value
	}
	for _, c := range conditions {
		set, err := upsert(status, c, Generation(r, o), now.Now().UTC().Format(timeFormat))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Ref(), err)
		}
		changed = changed || set
	}
	if !changed {
		return nil, nil
	}
	return s.Replace(ctx, r, o, status)
}

// Has returns the status and the reason of an object's condition; both are empty if the object has
// no condition of the type.
func Has(o *object.Object, conditionType string) (status metav1.ConditionStatus, reason string) {
	present, err := StatusOf(o)
	if err != nil {
		return "", ""
	}
	list, _ := present["conditions"].([]any)
	for _, item := range list {
		if isCondition(item, conditionType) {
			c := item.(map[string]any)
			text, _ := c["status"].(string)
			status = metav1.ConditionStatus(text)
			reason, _ = c["reason"].(string)
		}
	}
	return status, reason
}

// Generation returns the generation for a condition in an object's status. It is 0, and the
// condition has none, if the resource has no generations or no status subresource: there a write of
// a status makes a new generation.
func Generation(r object.Resource, o *object.Object) int64 {
	if !r.HasStatus {
		return 0
	}
	return o.Generation()
}

// Include puts a condition into a status that will replace o's, in the place of a condition of the
// same type. If o has the condition with the same status, its lastTransitionTime stays.
//
// Conditions are JSON values here, and meta.SetStatusCondition is not used: a status may hold items
// and fields that metav1.Condition does not have, and they must stay.
func Include(
	status map[string]any, now clock.PassiveClock, r object.Resource, o *object.Object, c hook.Condition,
) error {
	present, err := StatusOf(o)
	if err != nil {
		return err
	}
	list, ok := status["conditions"].([]any)
	if status["conditions"] != nil && !ok {
		return fmt.Errorf("status.conditions is %T, expected a list", status["conditions"])
	}
	is := func(item any) bool { return isCondition(item, c.Type) }
	before, _ := present["conditions"].([]any)
	at := slices.IndexFunc(list, is)
	was := slices.IndexFunc(before, is)
	switch {
	case at >= 0 && was >= 0:
		list[at] = before[was]
	case at >= 0:
		list = slices.Delete(list, at, at+1)
	case was >= 0:
		list = append(list, before[was])
	}
	status["conditions"] = list
	_, err = upsert(status, c, Generation(r, o), now.Now().UTC().Format(timeFormat))
	return err
}

// HasAny reports whether an object's status has a condition of one of the types.
func HasAny(o *object.Object, types []string) bool {
	raw, there := o.Field("status", "conditions")
	if !there {
		return false
	}
	var list []any
	if json.Unmarshal(raw, &list) != nil { // it is no list, and has none
		return false
	}
	return slices.ContainsFunc(list, func(item any) bool {
		return slices.ContainsFunc(types, func(name string) bool { return isCondition(item, name) })
	})
}

// CanHold reports whether a status can hold conditions: its field conditions is a list, or absent.
func CanHold(status map[string]any) bool {
	_, list := status["conditions"].([]any)
	return list || status["conditions"] == nil
}

// Remove removes the conditions of a type from a status, in place, and reports whether there were
// any. With reasons, it removes only conditions with one of them.
func Remove(status map[string]any, name string, reasons ...string) bool {
	list, _ := status["conditions"].([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		if !isCondition(item, name) || len(reasons) == 0 {
			return isCondition(item, name)
		}
		reason, _ := item.(map[string]any)["reason"].(string)
		return slices.Contains(reasons, reason)
	})
	if len(kept) == len(list) {
		return false
	}
	status["conditions"] = kept
	if len(kept) == 0 {
		delete(status, "conditions")
	}
	return true
}

// Message returns the message of a condition in an object's status; empty if there is none.
func Message(o *object.Object, name string) (string, error) {
	status, err := StatusOf(o)
	if err != nil {
		return "", err
	}
	list, _ := status["conditions"].([]any)
	for _, item := range list {
		if isCondition(item, name) {
			message, _ := item.(map[string]any)["message"].(string)
			return message, nil
		}
	}
	return "", nil
}

// isCondition reports whether an item of status.conditions is of a type.
func isCondition(item any, name string) bool {
	m, ok := item.(map[string]any)
	return ok && m["type"] == name
}

// upsert sets a condition in a status, in place, and reports whether it changed. Without a
// generation (0) the condition has none.
func upsert(status map[string]any, c hook.Condition, generation int64, now string) (bool, error) {
	list, ok := status["conditions"].([]any)
	if status["conditions"] != nil && !ok {
		return false, fmt.Errorf("status.conditions is %T, expected a list", status["conditions"])
	}
	next := map[string]any{
		"type":               c.Type,
		"status":             string(c.Status),
		"reason":             c.Reason,
		"message":            Shorten(c.Message, MaxMessage),
		"lastTransitionTime": now,
	}
	if generation != 0 {
		next["observedGeneration"] = generation
	}
	for i, item := range list {
		if !isCondition(item, c.Type) {
			continue
		}
		present := item.(map[string]any)
		if present["status"] == next["status"] {
			next["lastTransitionTime"] = present["lastTransitionTime"]
		}
		if sameCondition(present, next) {
			return false, nil
		}
		list[i] = next
		return true, nil
	}
	status["conditions"] = append(list, next)
	return true, nil
}

// sameCondition compares two conditions. A present condition without observedGeneration belongs to
// a resource that drops the field.
func sameCondition(present, next map[string]any) bool {
	for _, field := range []string{"status", "reason", "message", "observedGeneration"} {
		_, kept := present[field]
		if present[field] != next[field] && (kept || field != "observedGeneration") {
			return false
		}
	}
	return true
}
