package actor

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// conditional gives its conditions itself.
type conditional struct {
	corev1.ConfigMap
	conditions []metav1.Condition
}

func (c *conditional) GetConditions() []metav1.Condition { return c.conditions }

func TestConditionsOf(t *testing.T) {
	deployment := &appsv1.Deployment{Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{
		{
			Type: "Available", Status: corev1.ConditionTrue, Reason: "R", Message: "m", LastUpdateTime: metav1.Now(),
		},
	}}}
	custom := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{
		map[string]any{"type": "Ready", "status": "False", "observedGeneration": int64(3)},
	}}}}
	available := []metav1.Condition{{Type: "Available", Status: "True", Reason: "R", Message: "m"}}
	for name, c := range map[string]struct {
		object Object
		want   []metav1.Condition
	}{
		"conditional":               {&conditional{conditions: conditions("Ready=True")}, conditions("Ready=True")},
		"another type":              {deployment, available},
		"an untyped object":         {custom, []metav1.Condition{{Type: "Ready", Status: "False", ObservedGeneration: 3}}},
		"without conditions":        {&appsv1.Deployment{}, nil},
		"without a status":          {&corev1.ConfigMap{}, nil},
		"a status without the list": {&corev1.Namespace{}, nil},
		"an untyped empty object":   {&unstructured.Unstructured{Object: map[string]any{}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ConditionsOf(c.object)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestConditionsOfWrongType(t *testing.T) {
	for _, status := range []any{"none", map[string]any{"conditions": "none"}, map[string]any{"conditions": []any{7}}} {
		o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
		if got, err := ConditionsOf(o); err == nil {
			t.Errorf("status %v: conditions = %v, want an error", status, got)
		}
	}
}

func TestPredicates(t *testing.T) {
	object := &conditional{conditions: []metav1.Condition{
		{Type: "Ready", Status: "True", ObservedGeneration: 2},
		{Type: "Old", Status: "True", ObservedGeneration: 1},
		{Type: "Synced", Status: "False", Reason: "Busy", Message: "1 of 3 replicas"},
		{Type: "Failed", Status: "False", Reason: "NoReason"},
	}}
	object.Generation = 2
	for name, c := range map[string]struct {
		predicate Predicate
		want      string
	}{
		"true":             {ConditionTrue("Ready"), ""},
		"false":            {ConditionTrue("Synced"), "condition Synced is False, expected True: 1 of 3 replicas"},
		"reason only":      {ConditionTrue("Failed"), "condition Failed is False, expected True: NoReason"},
		"not set":          {ConditionTrue("Up"), "condition Up is not set, expected True"},
		"expected false":   {ConditionFalse("Failed"), ""},
		"older generation": {ConditionTrue("Old"), "condition Old is of generation 1, expected generation 2"},
		"a function":       {Where("it has conditions", func(c *conditional) bool { return len(c.conditions) > 0 }), ""},
		"not met":          {Where("labels", func(c *conditional) bool { return c.Labels != nil }), "not met: labels"},
		"another type": {Where("it is ready", func(*corev1.Pod) bool { return true }),
			`the requirement "it is ready" is for *v1.Pod, but the object is *actor.conditional`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.predicate.unmet(object); got != c.want {
				t.Errorf("unmet = %q, want %q", got, c.want)
			}
		})
	}
	broken := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": "none"}}}
	if got := ConditionTrue("Ready").unmet(broken); !strings.Contains(got, "expected a list of conditions") {
		t.Errorf("unmet = %q", got)
	}
}
