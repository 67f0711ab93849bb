package plan_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestConditionsOfAnAnswer(t *testing.T) {
	got, err := plan.Conditions(&hook.Answer{Conditions: []hook.Condition{
		{Type: "Ready", Status: "True", Reason: "AllUp", Message: "all is well"},
		{Type: "example.com/Degraded", Status: "False", Reason: "No"},
		{Type: "Known", Status: "Unknown", Reason: "NotAsked"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	want := []hook.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "AllUp", Message: "all is well"},
		{Type: "example.com/Degraded", Status: metav1.ConditionFalse, Reason: "No"},
		{Type: "Known", Status: metav1.ConditionUnknown, Reason: "NotAsked"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

// TestReservedNames compares the names that the engine writes with those that hooks may not use.
func TestReservedNames(t *testing.T) {
	conditions := []string{
		plan.Synced, plan.Updated, plan.DependenciesMet, plan.ChangesHeldBack, plan.ChildWarnings,
	}
	if diff := cmp.Diff(conditions, plan.EngineConditions); diff != "" {
		t.Errorf("conditions (-written +reserved):\n%s", diff)
	}
	value := "{}"
	err := plan.CheckMetadata(nil, map[string]*string{object.LastAppliedAnnotation: &value})
	if err == nil {
		t.Errorf("a hook may set the annotation %s, want an error", object.LastAppliedAnnotation)
	}
}

func TestEventsOfAnAnswer(t *testing.T) {
	got, err := plan.Events(&hook.Answer{
		Events: []hook.Event{{Reason: "Scaled", Message: "up"}, {Warning: true, Reason: "Slow", Message: "down"}},
		Results: []hook.Result{
			{Reason: "Fine"},
			{Severity: hook.Info, Reason: "Fine", Message: "well"},
			{Severity: hook.Warning, Reason: "Old", Message: "ill"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []plan.Event{
		{Reason: "Scaled", Message: "up"}, {Warning: true, Reason: "Slow", Message: "down"},
		{LogOnly: true, Reason: "Fine"}, {LogOnly: true, Reason: "Fine", Message: "well"},
		{Warning: true, Reason: "Old", Message: "ill"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestBadExtras(t *testing.T) {
	fine := hook.Condition{Type: "A", Status: "True", Reason: "Fine"}
	changed := func(change func(*hook.Condition)) hook.Answer {
		c := fine
		change(&c)
		return hook.Answer{Conditions: []hook.Condition{c}}
	}
	cases := map[string]struct {
		answer hook.Answer
		want   string
	}{
		"no type": {
			changed(func(c *hook.Condition) { c.Type = "" }),
			"conditions[0]: type is missing; expected one such as Ready",
		},
		"a bad type": {changed(func(c *hook.Condition) { c.Type = "a b" }), `conditions[0] "a b": type: name part`},
		"the engine's": {
			changed(func(c *hook.Condition) { c.Type = plan.Updated }),
			`conditions[0] "Updated": belongs to the engine; expected another type`,
		},
		"no status": {
			changed(func(c *hook.Condition) { c.Status = "" }),
			`conditions[0] "A": status is ""; expected True, False or Unknown`,
		},
		"a sentence": {
			changed(func(c *hook.Condition) { c.Reason = "All is well." }),
			`conditions[0] "A": reason is "All is well."; expected one word`,
		},
		"a type twice": {
			hook.Answer{Conditions: []hook.Condition{fine, fine}},
			`conditions[1] "A": is said twice, first as conditions[0]`,
		},
		"too many types": {hook.Answer{Conditions: make([]hook.Condition, 33)}, "conditions: are 33, expected at most 32"},
		"too many Events": {
			hook.Answer{Events: make([]hook.Event, 33)}, "events: are 33, expected at most 32"},
		"too many results": {hook.Answer{Results: make([]hook.Result, 33)}, "results: are 33, expected at most 32"},
		"an Event's reason": {
			hook.Answer{
				Events: []hook.Event{{Reason: strings.Repeat("a", 300)}},
			},
			`events[0]: reason is "` + strings.Repeat("a", 80) + `…"; expected one word`,
		},
		"a result's reason": {hook.Answer{Results: []hook.Result{{}}}, `results[0]: reason is ""; expected one word`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			answer := &c.answer
			_, first := plan.Conditions(answer)
			_, second := plan.Events(answer)
			refused(t, errors.Join(first, second), c.want)
		})
	}
}

func refused(t *testing.T, err error, want string) {
	t.Helper()
	var fault *plan.AnswerError
	if !errors.As(err, &fault) || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want an *AnswerError that says %s", err, want)
	}
}

var podScope = plan.Scope{
	ParentNamespace: "shop",
	ChildKinds: []plan.ChildKind{
		{
			Resource: object.Resource{
				GVK:        schema.GroupVersionKind{Version: "v1", Kind: "Pod"},
				Plural:     "pods",
				Namespaced: true,
			},
		},
	},
}

func podNamed(name string) json.RawMessage {
	return json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"` + name + `"}}`)
}

func nameOf(name string) object.Ref { return refOf("v1", "Pod", "", name) }

func TestStates(t *testing.T) {
	ready := true
	for name, state := range map[string]hook.ChildState{
		"by place": {Index: 1}, "by name": {Index: -1, Ref: nameOf("b")},
	} {
		state.Ready, state.DependsOn = &ready, []hook.Dependency{{Ref: nameOf("a"), Condition: "Ready"}}
		children, err := plan.Children(plan.Input{Observed: &plan.Observed{Scope: podScope}},
			&hook.Answer{Children: []json.RawMessage{podNamed("a"), podNamed("b")}, States: []hook.ChildState{state}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := []hook.Dependency{
			{Ref: object.Ref{GVK: podScope.ChildKinds[0].Resource.GVK, Namespace: "shop", Name: "a"}, Condition: "Ready"},
		}
		if diff := cmp.Diff(want, children[1].DependsOn()); diff != "" || children[1].Ready() != &ready ||
			children[0].DependsOn() != nil {
			t.Errorf("%s: children %v (-want +got):\n%s", name, children, diff)
		}
	}
}

func TestBadStates(t *testing.T) {
	for name, c := range map[string]struct {
		states []hook.ChildState
		want   string
	}{
		"a stranger": {[]hook.ChildState{{Index: -1, Ref: nameOf("c")}},
			`childStates[0] Pod.v1 "shop/c": is not desired; expected one of the desired objects`},
		"twice": {
			[]hook.ChildState{{Index: -1, Ref: nameOf("b")}, {Index: 1}},
			`childStates[1] Pod.v1 "shop/b": is said twice, first as childStates[0]; expected each object once`},
		"a stranger's": {
			[]hook.ChildState{{Index: 1, DependsOn: []hook.Dependency{{Ref: refOf("v1", "Node", "", "n")}}}},
			`children[1] Pod.v1 "shop/b": depends on Node.v1 "n", which is not desired`},
	} {
		_, err := plan.Children(plan.Input{Observed: &plan.Observed{Scope: podScope}},
			&hook.Answer{Children: []json.RawMessage{podNamed("a"), podNamed("b")}, States: c.states})
		t.Run(name, func(t *testing.T) { refused(t, err, c.want) })
	}
}
