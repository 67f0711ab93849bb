package codec

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestDetails decodes the details of the responses of all methods that have some.
func TestDetails(t *testing.T) {
	conditions := []*hookv1.Condition{{Type: "Ready", Status: hookv1.ConditionStatus_CONDITION_STATUS_TRUE,
		Reason: "AllUp", Message: "all is well"}}
	events := []*hookv1.Event{
		{Type: hookv1.EventType_EVENT_TYPE_NORMAL, Reason: "Scaled", Message: "up"},
		{Type: hookv1.EventType_EVENT_TYPE_WARNING, Reason: "Slow", Message: "down"},
	}
	results := []*hookv1.Result{
		{Severity: hookv1.Severity_SEVERITY_INFO, Reason: "Fine"},
		{Severity: hookv1.Severity_SEVERITY_WARNING, Reason: "Old", Message: "ill"},
		{Severity: hookv1.Severity_SEVERITY_FATAL, Reason: "Gone"},
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
	decodedConditions := []hook.Condition{
		{Type: "Ready", Status: metav1.ConditionTrue, Reason: "AllUp", Message: "all is well"},
	}
	want := &hook.Answer{
		Children: []json.RawMessage{[]byte(`{"a":1}`), []byte(`{"b":1}`)},
		Events:   []hook.Event{{Reason: "Scaled", Message: "up"}, {Warning: true, Reason: "Slow", Message: "down"}},
		Results: []hook.Result{
			{Severity: hook.Info, Reason: "Fine"},
			{Severity: hook.Warning, Reason: "Old", Message: "ill"},
			{Severity: hook.Fatal, Reason: "Gone"},
		},
		Requirements: []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"}},
		States: []hook.ChildState{{Index: 1, Ready: &no, DependsOn: []hook.Dependency{
			{Ref: object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "shop", Name: "a"},
				Condition: "Ready"}}}},
	}
	details := &hookv1.ResponseDetails{
		Conditions: conditions, Events: events, Results: results, Requirements: requirements,
	}
	withoutConditions := &hookv1.ResponseDetails{Events: events, Results: results, Requirements: requirements}
	for _, response := range []proto.Message{
		&compositev1.SyncResponse{Details: details, Children: children},
		&compositev1.FinalizeResponse{Details: details, Children: children},
		&decoratorv1.SyncResponse{Details: details, Attachments: children},
		&decoratorv1.FinalizeResponse{Details: details, Attachments: children},
		&mapv1.MapResponse{Details: withoutConditions, Outputs: children},
		&mapv1.TombstoneResponse{Details: withoutConditions, Outputs: children},
		&mapv1.FinalizeResponse{Details: withoutConditions, Outputs: children},
	} {
		got, err := Answer(response)
		if err != nil {
			t.Errorf("%T: %v", response, err)
			continue
		}
		want.Conditions = decodedConditions
		if _, has := response.(withStatus); !has {
			want.Conditions = nil // a test of its own
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", response, diff)
		}
	}
}

// TestEnumsAreRequired rejects a value that is unspecified or unknown, with the name of the field.
func TestEnumsAreRequired(t *testing.T) {
	operator := func(o hookv1.LabelSelectorRequirement_Operator) *hookv1.ResponseDetails {
		return &hookv1.ResponseDetails{Requirements: []*hookv1.RelatedResourceRule{
			{LabelSelector: &hookv1.LabelSelector{MatchExpressions: []*hookv1.LabelSelectorRequirement{{Key: "a",
				Operator: o}}}},
		}}
	}
	for want, details := range map[string]*hookv1.ResponseDetails{
		"conditions[0].status is CONDITION_STATUS_UNSPECIFIED, " +
			"expected CONDITION_STATUS_TRUE, CONDITION_STATUS_FALSE or CONDITION_STATUS_UNKNOWN": {
			Conditions: []*hookv1.Condition{{Type: "Ready"}},
		},
		"conditions[1].status is 77, expected CONDITION_STATUS_TRUE, CONDITION_STATUS_FALSE or CONDITION_STATUS_UNKNOWN": {
			Conditions: []*hookv1.Condition{
				{Type: "Ready", Status: hookv1.ConditionStatus_CONDITION_STATUS_TRUE}, {Type: "Other", Status: 77},
			},
		},
		"events[0].type is EVENT_TYPE_UNSPECIFIED, expected EVENT_TYPE_NORMAL or EVENT_TYPE_WARNING": {
			Events: []*hookv1.Event{{Reason: "Scaled"}},
		},
		"events[0].type is -1, expected EVENT_TYPE_NORMAL or EVENT_TYPE_WARNING": {
			Events: []*hookv1.Event{{Type: -1, Reason: "Scaled"}},
		},
		"results[0].severity is SEVERITY_UNSPECIFIED, expected SEVERITY_INFO, SEVERITY_WARNING or SEVERITY_FATAL": {
			Results: []*hookv1.Result{{Reason: "Old"}},
		},
		"results[0].severity is 4, expected SEVERITY_INFO, SEVERITY_WARNING or SEVERITY_FATAL": {
			Results: []*hookv1.Result{{Severity: 4, Reason: "Old"}},
		},
		"requirements[0].label_selector.match_expressions[0].operator is OPERATOR_UNSPECIFIED, " +
			"expected OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS or OPERATOR_DOES_NOT_EXIST": operator(0),
		"requirements[0].label_selector.match_expressions[0].operator is 5, " +
			"expected OPERATOR_IN, OPERATOR_NOT_IN, OPERATOR_EXISTS or OPERATOR_DOES_NOT_EXIST": operator(5),
	} {
		if _, err := Answer(&compositev1.SyncResponse{Details: details}); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
