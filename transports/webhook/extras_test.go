package webhook

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const allExtras = `{
	"conditions": [{"type": "Ready", "status": "True", "reason": "AllUp", "message": "all is well"}],
	"events": [{"reason": "Scaled", "message": "up"}, {"type": "Normal", "reason": "Scaled"},
		{"type": "Warning", "reason": "Slow", "message": "down"}],
	"results": [{"severity": "Warning", "reason": "Old", "message": "ill"}, {"reason": "Fine"}],
	"requirements": [{"apiVersion": "v1", "resource": "configmaps", "names": ["a"], "name": "settings"}],
	"childStates": [{"apiVersion": "v1", "kind": "Service", "namespace": "shop", "name": "web", "ready": false,
		"dependsOn": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "condition": "Available"}]}]
}`

// TestExtras reads the fields of v2 for both kinds of controller, also in strict mode. v1 ignores
// them.
func TestExtras(t *testing.T) {
	no := false
	want := &hook.Answer{
		Conditions: []hook.Condition{{Type: "Ready", Status: "True", Reason: "AllUp", Message: "all is well"}},
		Events: []hook.Event{
			{Reason: "Scaled", Message: "up"},
			{Reason: "Scaled"},
			{Warning: true, Reason: "Slow", Message: "down"},
		},
		Results:      []hook.Result{{Severity: hook.Warning, Reason: "Old", Message: "ill"}, {Reason: "Fine"}},
		Requirements: []hook.RelatedRule{{APIVersion: "v1", Resource: "configmaps", Names: []string{"a"}, Name: "settings"}},
		States: []hook.ChildState{
			{
				Index: -1,
				Ref:   object.Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Service"}, Namespace: "shop", Name: "web"},
				Ready: &no,
				DependsOn: []hook.Dependency{
					{
						Ref: object.Ref{
							GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Name: "web",
						},
						Condition: "Available",
					},
				},
			},
		},
	}
	for _, contract := range []hook.ControllerKind{hook.Composite, hook.Decorator} {
		for _, op := range []hook.Op{hook.Sync, hook.Finalize} {
			q := &hook.Question{Kind: contract, Op: op}
			for _, strict := range []bool{true, false} {
				got, err := read(q, "v2", []byte(allExtras), strict)
				if err != nil {
					t.Errorf("%s %s: %v", contract, op, err)
					continue
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", contract, op, diff)
				}
			}
			got, err := read(q, "v1", []byte(allExtras), false)
			if err != nil {
				t.Errorf("v1: %v", err)
			} else if diff := cmp.Diff(&hook.Answer{}, got); diff != "" {
				t.Errorf("v1 (-want +got):\n%s", diff)
			}
			if _, err := read(q, "v1", []byte(allExtras), true); err == nil ||
				!strings.Contains(err.Error(), `unknown field "conditions"`) {
				t.Errorf("v1, strict: error %v", err)
			}
		}
	}
}

// TestMapExtras reads the fields of v2 in the answers of map hooks: all but conditions.
func TestMapExtras(t *testing.T) {
	body := strings.Replace(allExtras, `"conditions": [{"type": "Ready", "status": "True", "reason": "AllUp", `+
		`"message": "all is well"}]`, `"outputs": []`, 1)
	for _, op := range []hook.Op{hook.Map, hook.Tombstone, hook.Finalize} {
		got, err := read(&hook.Question{Kind: hook.Mapping, Op: op}, "v2", []byte(body), true)
		if err != nil {
			t.Errorf("%s: %v", op, err)
			continue
		}
		if len(got.Events) != 3 || len(got.Results) != 2 || len(got.Requirements) != 1 || len(got.States) != 1 {
			t.Errorf("%s: got %+v, want all details", op, got)
		}
		if _, err := read(&hook.Question{Kind: hook.Mapping, Op: op}, "v1", []byte(body), true); err == nil ||
			!strings.Contains(err.Error(), `unknown field "events"`) {
			t.Errorf("%s v1, strict: error %v", op, err)
		}
	}
}

func TestBadSayings(t *testing.T) {
	for body, want := range map[string]string{
		`{"conditions":[null]}`:                  "conditions[0]: got null, expected an object",
		`{"results":[null]}`:                     "results[0]: got null, expected an object",
		`{"events":[{},null]}`:                   "events[1]: got null, expected an object",
		`{"events":[{"type":"Loud"}]}`:           `events[0].type is "Loud", expected Normal or Warning`,
		`{"requirements":[null]}`:                "requirements[0]: got null, expected an object",
		`{"childStates":[null]}`:                 "childStates[0]: got null, expected an object",
		`{"childStates":[{"dependsOn":[null]}]}`: "childStates[0].dependsOn[0]: got null, expected an object",
		`{"childStates":[{"ready":"yes"}]}`:      "childStates.ready: got a string, expected a boolean",
		`{"conditions":{"Ready":"True"}}`:        "conditions",
	} {
		if _, err := read(&hook.Question{Kind: hook.Composite, Op: hook.Sync}, "v2", []byte(body),
			true); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", body, err, want)
		}
	}
}
