package actor

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Predicate is a requirement for an object that exists, such as a condition.
type Predicate struct {
	// unmet returns why the object does not meet the requirement, and an empty text if it does.
	unmet func(Object) string
}

// ConditionTrue requires that a condition has the status True.
func ConditionTrue(name string) Predicate { return ConditionStatus(name, metav1.ConditionTrue) }

// ConditionFalse requires that a condition has the status False.
func ConditionFalse(name string) Predicate { return ConditionStatus(name, metav1.ConditionFalse) }

// ConditionStatus requires that a condition has a status. The condition must not belong to an
// earlier generation of the object: its observedGeneration, if it has one, must be the object's
// generation.
func ConditionStatus(name string, status metav1.ConditionStatus) Predicate {
	return Predicate{unmet: func(o Object) string {
		conditions, err := ConditionsOf(o)
		if err != nil {
			return err.Error()
		}
		c := findCondition(conditions, name)
		switch {
		case c == nil:
			return fmt.Sprintf("condition %s is not set, expected %s", name, status)
		case c.Status != status:
			return fmt.Sprintf("condition %s is %s, expected %s%s", name, c.Status, status, because(c))
		case c.ObservedGeneration != 0 && c.ObservedGeneration < o.GetGeneration():
			return fmt.Sprintf("condition %s is of generation %d, expected generation %d",
				name, c.ObservedGeneration, o.GetGeneration())
		}
		return ""
	}}
}

// because returns the message of a condition, or its reason, as the end of a sentence.
func because(c *metav1.Condition) string {
	if text := cmp.Or(c.Message, c.Reason); text != "" {
		return ": " + text
	}
	return ""
}

// Where requires that a function returns true for the object. The text names the requirement in
// messages, such as "status.endpoint is set". The function must depend on the object alone.
func Where[T Object](text string, holds func(T) bool) Predicate {
	return Predicate{unmet: func(o Object) string {
		typed, ok := o.(T)
		if !ok {
			return fmt.Sprintf("the requirement %q is for %T, but the object is %T", text, *new(T), o)
		}
		if holds(typed) {
			return ""
		}
		return "not met: " + text
	}}
}
