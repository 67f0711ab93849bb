package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/features"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The Service is created when its Deployment is available, and deleted before it.
func ExampleChild() {
	object := func(apiVersion, kind string) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "web"}}
	}
	config := object("v1", "ConfigMap")
	deployment := object("apps/v1", "Deployment")
	service := object("v1", "Service")
	response := &hook.SyncResponse{
		Children: []hook.Child{
			{Object: config},
			{Object: deployment, DependsOn: hook.DependsOn(config)},
			{Object: service, DependsOn: hook.DependsOn(deployment, "Available")},
		},
		Conditions: []hook.Condition{
			{Type: "Ready", Status: hook.ConditionFalse, Reason: "Starting", Message: "the Deployment is not available yet"},
		},
		Events: []hook.Event{{Reason: "Scaled", Message: "from 1 to 2"}},
	}
	fmt.Println(len(response.Children), response.Conditions[0].Reason)
	// Output: 3 Starting
}

var (
	saysConditions = []hook.Condition{{Type: "Ready", Status: hook.ConditionUnknown, Reason: "AllUp",
		Message: "all is well"}}
	saysEvents  = []hook.Event{{Type: hook.EventWarning, Reason: "Slow", Message: "down"}}
	saysResults = []hook.Result{
		{Reason: "Fine"},
		{Severity: hook.SeverityWarning, Reason: "Old", Message: "ill"},
		{Severity: hook.SeverityFatal, Reason: "Gone"},
	}
	saysRules = []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"}}
)

// children are a Service and a Pod that depends on it twice.
func children() []hook.Child {
	service := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"},
	}
	pod := json.RawMessage(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`)
	return []hook.Child{
		{Object: service, Ready: new(true)},
		{Object: pod, Ready: new(false), DependsOn: slices.Concat(hook.DependsOn(service, "Bound", "Open"),
			hook.DependsOn(service))},
	}
}

// TestAnswersThatSayMore answers the same by all four methods.
func TestAnswersThatSayMore(t *testing.T) {
	on := func(condition string) *hookv1.Dependency {
		return &hookv1.Dependency{ApiVersion: "v1", Kind: "Service", Namespace: "shop", Name: "web", Condition: condition}
	}
	want := &compositev1.SyncResponse{
		Children: []*hookv1.DesiredObject{
			{
				Encoding: hookv1.Encoding_ENCODING_JSON, Ready: proto.Bool(true),
				Body: []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","namespace":"shop"},"spec":{}}`),
			},
			{
				Encoding:  hookv1.Encoding_ENCODING_JSON,
				Ready:     proto.Bool(false),
				DependsOn: []*hookv1.Dependency{on("Bound"), on("Open"), on("")},
				Body:      []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web"}}`),
			},
		},
		Details: &hookv1.ResponseDetails{Conditions: []*hookv1.Condition{
			{Type: "Ready", Status: hookv1.ConditionStatus_CONDITION_STATUS_UNKNOWN, Reason: "AllUp", Message: "all is well"},
		},
			Events: []*hookv1.Event{{Type: hookv1.EventType_EVENT_TYPE_WARNING, Reason: "Slow", Message: "down"}},
			Results: []*hookv1.Result{
				{
					Severity: hookv1.Severity_SEVERITY_INFO,
					Reason:   "Fine",
				},
				{Severity: hookv1.Severity_SEVERITY_WARNING, Reason: "Old", Message: "ill"},
				{Severity: hookv1.Severity_SEVERITY_FATAL, Reason: "Gone"},
			},
			Requirements: []*hookv1.RelatedResourceRule{
				{ApiVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"},
			},
		},
		Meta: &hookv1.ResponseMeta{Features: features.All()},
	}
	sync := func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
		return &hook.SyncResponse{
			Children:     children(),
			Conditions:   saysConditions,
			Events:       saysEvents,
			Results:      saysResults,
			Requirements: saysRules,
		}, nil
	}
	client := serve(t, hook.Composite{Sync: sync, Finalize: sync})
	got, err := client.Sync(t.Context(), request())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("sync (-want +got):\n%s", diff)
	}
	final, err := client.Finalize(t.Context(),
		&compositev1.FinalizeRequest{Controller: request().GetController(), Parent: request().GetParent()})
	if err != nil {
		t.Fatal(err)
	}
	got = &compositev1.SyncResponse{
		Children: final.GetChildren(),
		Details:  final.GetDetails(),
		Meta:     final.GetMeta(),
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("finalize (-want +got):\n%s", diff)
	}
}

func TestBadSayings(t *testing.T) {
	cases := map[string]struct {
		resp *hook.SyncResponse
		text string
	}{
		"a severity that is none": {
			&hook.SyncResponse{Results: []hook.Result{{Severity: "Bad"}}},
			`Results[0].Severity is "Bad", expected Info, Warning or Fatal`,
		},
		"a selector that is none": {
			&hook.SyncResponse{
				Requirements: []hook.RelatedRule{{
					LabelSelector: &hook.LabelSelector{MatchExpressions: []hook.Requirement{{Key: "a"}}},
				}},
			},
			`Requirements[0].LabelSelector: operator of label "a" is ""`,
		},
		"a dependency without a name": {
			&hook.SyncResponse{Children: []hook.Child{
				{Object: map[string]any{}, DependsOn: hook.DependsOn(map[string]any{"kind": "Pod"})},
			}},
			`Children[0]: DependsOn[0] has apiVersion "", kind "Pod" and name ""`,
		},
		"a dependency that is no object": {
			&hook.SyncResponse{Children: []hook.Child{{DependsOn: hook.DependsOn(7)}}},
			`Children[0]: DependsOn[0] has apiVersion "", kind "" and name ""`,
		},
		"nothing, with something said": {
			&hook.SyncResponse{Children: []hook.Child{{Ready: new(true)}}},
			"Children[0]: is nil; expected an object",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client := serve(t,
				hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return c.resp, nil }})
			_, err := client.Sync(t.Context(), request())
			if got := status.Convert(err); got.Code() != codes.Internal || !strings.Contains(got.Message(), c.text) {
				t.Errorf("got %v, want %q", err, c.text)
			}
		})
	}
}
