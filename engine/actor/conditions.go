package actor

import (
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Conditional is implemented by types that give access to their conditions. The conditions of
// other types, such as Deployment, are read from their field status.conditions.
//
// A type that implements Conditional and is reconciled by an actor appears in the metric
// hookloop_object_condition.
type Conditional interface {
	GetConditions() []metav1.Condition
}

// ConditionsOf returns the conditions of an object. It returns an error if status.conditions is
// not a list of conditions.
func ConditionsOf(o Object) ([]metav1.Condition, error) {
	if c, ok := o.(Conditional); ok {
		return c.GetConditions(), nil
	}
	raw, err := rawConditions(o)
	if err != nil || raw == nil {
		return nil, err
	}
	var conditions []metav1.Condition
	if err := json.Unmarshal(raw, &conditions); err != nil {
		return nil, fmt.Errorf("status.conditions: expected a list of conditions: %w", err)
	}
	return conditions, nil
}

// rawConditions returns status.conditions as JSON, and nil if the object has no such field.
func rawConditions(o Object) ([]byte, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		list, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
		if err != nil || !found {
			return nil, err
		}
		return json.Marshal(list)
	}
	value := reflect.Indirect(reflect.ValueOf(o))
	for _, name := range []string{"Status", "Conditions"} {
		if value.Kind() != reflect.Struct {
			return nil, nil
		}
		value = reflect.Indirect(value.FieldByName(name))
		if !value.IsValid() {
			return nil, nil
		}
	}
	return json.Marshal(value.Interface())
}

// findCondition returns the condition of a type, and nil if there is none.
func findCondition(conditions []metav1.Condition, name string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == name {
			return &conditions[i]
		}
	}
	return nil
}
