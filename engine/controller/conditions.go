package controller

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/report"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// True returns a condition with the status True, which is the good state: name condition types so,
// such as Ready. A reason is one word in CamelCase.
func True(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionTrue, reason, message)
}

// False returns a condition with the status False.
func False(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionFalse, reason, message)
}

// Unknown returns a condition with the status Unknown.
func Unknown(conditionType, reason, message string) metav1.Condition {
	return condition(conditionType, metav1.ConditionUnknown, reason, message)
}

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// SetConditions sets conditions of an object in the list of its status, which is a map by type:
// each condition replaces the present one of its type, and the others stay. A list with several
// conditions of one type keeps the one with the latest lastTransitionTime.
//
// The observedGeneration becomes the object's generation, unless the condition has one. The
// lastTransitionTime changes with the status only, so that a condition that stays as it is changes
// nothing. The message becomes one line of at most 1000 bytes. Call it in the function of
// SetStatus, with both outcomes: a condition that is not set again stays.
func SetConditions(of metav1.Object, list *[]metav1.Condition, set ...metav1.Condition) {
	var kept []metav1.Condition
	for _, c := range *list {
		if at := indexOf(kept, c.Type); at < 0 {
			kept = append(kept, c)
		} else if !c.LastTransitionTime.Before(&kept[at].LastTransitionTime) {
			kept[at] = c
		}
	}
	for _, c := range set {
		c.Message = report.Shorten(c.Message, report.MaxMessage)
		if c.ObservedGeneration == 0 {
			c.ObservedGeneration = of.GetGeneration()
		}
		at := indexOf(kept, c.Type)
		if at >= 0 && kept[at].Status == c.Status {
			c.LastTransitionTime = kept[at].LastTransitionTime
		}
		if c.LastTransitionTime.IsZero() {
			c.LastTransitionTime = metav1.Now().Rfc3339Copy()
		}
		if at < 0 {
			kept = append(kept, c)
		} else {
			kept[at] = c
		}
	}
	*list = kept
}

func indexOf(list []metav1.Condition, conditionType string) int {
	for i, c := range list {
		if c.Type == conditionType {
			return i
		}
	}
	return -1
}

// SetConditionsOf is SetConditions for an object without a Go type: the list is status.conditions.
// Further fields of conditions that are not set stay. The error names the item that is no
// condition.
func SetConditionsOf(u *unstructured.Unstructured, set ...metav1.Condition) error {
	items, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return err
	}
	before := make([]metav1.Condition, len(items))
	for i, item := range items {
		fields, ok := item.(map[string]any)
		if !ok {
			return fmt.Errorf("status.conditions[%d] is %T, expected a condition", i, item)
		}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &before[i]); err != nil {
			return fmt.Errorf("status.conditions[%d]: %w", i, err)
		}
	}
	list := slices.Clone(before)
	SetConditions(u, &list, set...)
	result := make([]any, len(list))
	for i := range list {
		if at := slices.Index(before, list[i]); at >= 0 {
			result[i] = items[at]
			continue
		}
		result[i], err = runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			return fmt.Errorf("condition %s: %w", list[i].Type, err)
		}
	}
	return unstructured.SetNestedSlice(u.Object, result, "status", "conditions")
}
