package controller_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/controller"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	past   = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	before = metav1.NewTime(past.Add(-time.Hour))
)

func TestSetConditions(t *testing.T) {
	with := func(c metav1.Condition, at metav1.Time, generation int64) metav1.Condition {
		c.LastTransitionTime = at
		c.ObservedGeneration = generation
		return c
	}
	ready := controller.True("Ready", "Up", "3 pages")
	failed := controller.False("Ready", "Down", "no page")
	other := with(controller.Unknown("Other", "Foreign", ""), before, 1)
	var changes metav1.Time // any time after past
	for name, test := range map[string]struct{ list, set, want []metav1.Condition }{
		"the first condition": {nil, []metav1.Condition{ready}, []metav1.Condition{with(ready, changes, 7)}},
		"an equal one": {
			[]metav1.Condition{with(ready, past, 7)}, []metav1.Condition{ready}, []metav1.Condition{with(ready, past, 7)},
		},
		"a later generation": {
			[]metav1.Condition{with(ready, past, 6)}, []metav1.Condition{ready}, []metav1.Condition{with(ready, past, 7)},
		},
		"another status": {
			[]metav1.Condition{with(ready, past, 7)}, []metav1.Condition{failed}, []metav1.Condition{with(failed, changes, 7)},
		},
		"conditions of others": {
			[]metav1.Condition{other, with(ready, past, 7)}, []metav1.Condition{failed},
			[]metav1.Condition{other, with(failed, changes, 7)},
		},
		"two of one type": {
			[]metav1.Condition{with(ready, before, 5), other, with(failed, past, 6)}, []metav1.Condition{failed},
			[]metav1.Condition{with(failed, past, 7), other},
		},
		"two of one type that is not set": {
			[]metav1.Condition{with(failed, past, 6), with(ready, before, 5)}, nil, []metav1.Condition{with(failed, past, 6)},
		},
		"a generation and a time of its own": {
			nil, []metav1.Condition{with(ready, before, 3)}, []metav1.Condition{with(ready, before, 3)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			list := test.list
			controller.SetConditions(&metav1.ObjectMeta{Generation: 7}, &list, test.set...)
			for i := range list {
				if list[i].LastTransitionTime.After(past.Time) {
					list[i].LastTransitionTime = changes
				}
			}
			if diff := cmp.Diff(test.want, list); diff != "" {
				t.Errorf("conditions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSetConditionsOf(t *testing.T) {
	foreign := map[string]any{"type": "Other", "status": "True", "reason": "R", "message": "", "weight": int64(3),
		"lastTransitionTime": "2026-01-01T12:00:00Z"}
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"generation": int64(7)},
		"status": map[string]any{"conditions": []any{foreign, map[string]any{"type": "Ready", "status": "True",
			"reason": "Up", "message": "", "lastTransitionTime": "2026-01-01T12:00:00Z"}}},
	}}
	if err := controller.SetConditionsOf(u, controller.True("Ready", "Up", "all\npages are up")); err != nil {
		t.Fatal(err)
	}
	got, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	want := []any{foreign, map[string]any{"type": "Ready", "status": "True", "reason": "Up",
		"message": "all; pages are up", "lastTransitionTime": "2026-01-01T12:00:00Z", "observedGeneration": int64(7)}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	u.Object["status"] = map[string]any{"conditions": []any{"Ready"}}
	err := controller.SetConditionsOf(u)
	if err == nil || !strings.Contains(err.Error(), "status.conditions[0] is string") {
		t.Errorf("error %v, want one that names the item", err)
	}
}
