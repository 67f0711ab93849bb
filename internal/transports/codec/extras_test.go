package codec

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestExtras reads the same from the answers of all four methods.
func TestExtras(t *testing.T) {
	conditions := []*hookv1.Condition{{Type: "Ready", Status: "True", Reason: "AllUp", Message: "all is well"}}
	events := []*hookv1.Event{{Reason: "Scaled", Message: "up"}, {Warning: true, Reason: "Slow", Message: "down"}}
	results := []*hookv1.Result{
		{Reason: "None"}, {Severity: hookv1.Severity_SEVERITY_INFO, Reason: "Fine"},
		{Severity: hookv1.Severity_SEVERITY_WARNING, Reason: "Old", Message: "ill"},
		{Severity: hookv1.Severity_SEVERITY_FATAL, Reason: "Gone"}, {Severity: 77, Reason: "New"},
	}
	requirements := []*hookv1.RelatedResourceRule{
		{ApiVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"},
	}
	children := []*hookv1.DesiredObject{
		{Body: []byte(`{"a":1}`)},
		{Body: []byte(`{"b":1}`), Ready: proto.Bool(false), DependsOn: []*hookv1.Dependency{
			{ApiVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "a", Condition: "Ready"}}},
	}
	no := false
	want := &hook.Answer{
		Children:   []json.RawMessage{[]byte(`{"a":1}`), []byte(`{"b":1}`)},
		Conditions: []hook.Condition{{Type: "Ready", Status: "True", Reason: "AllUp", Message: "all is well"}},
		Events:     []hook.Event{{Reason: "Scaled", Message: "up"}, {Warning: true, Reason: "Slow", Message: "down"}},
		Results: []hook.Result{
			{
				Severity: hook.Info,
				Reason:   "None",
			},
			{Severity: hook.Info, Reason: "Fine"},
			{Severity: hook.Warning, Reason: "Old", Message: "ill"},
			{Severity: hook.Fatal, Reason: "Gone"},
			{Severity: hook.Fatal, Reason: "New"},
		},
		Requirements: []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"}},
		States: []hook.ChildState{{Index: 1, Ready: &no, DependsOn: []hook.Dependency{
			{Ref: object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "shop", Name: "a"}, Condition: "Ready"}}}},
	}
	for _, response := range []proto.Message{
		&hookv1.CompositeHookServiceSyncResponse{Conditions: conditions, Events: events, Results: results, Requirements: requirements, Children: children},
		&hookv1.CompositeHookServiceFinalizeResponse{Conditions: conditions, Events: events, Results: results, Requirements: requirements, Children: children},
		&hookv1.DecoratorHookServiceSyncResponse{Conditions: conditions, Events: events, Results: results, Requirements: requirements, Attachments: children},
		&hookv1.DecoratorHookServiceFinalizeResponse{Conditions: conditions, Events: events, Results: results, Requirements: requirements, Attachments: children},
	} {
		got, err := Answer(response)
		if err != nil {
			t.Errorf("%T: %v", response, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", response, diff)
		}
	}
}

func TestARequirementThatIsWrongIsNamed(t *testing.T) {
	_, err := Answer(&hookv1.CompositeHookServiceSyncResponse{Requirements: []*hookv1.RelatedResourceRule{
		{LabelSelector: &hookv1.LabelSelector{MatchExpressions: []*hookv1.LabelSelectorRequirement{{Key: "a"}}}},
	}})
	want := "requirements[0].label_selector: match_expressions[0].operator: is OPERATOR_UNSPECIFIED, expected one of IN, NOT_IN, EXISTS and DOES_NOT_EXIST"
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
