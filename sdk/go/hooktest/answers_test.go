package hooktest_test

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/hooktest"
)

// table is sdk/testdata/answers.json, which also tests the engine.
type table struct {
	Declared []string
	Parents  map[string]json.RawMessage
	Cases    []struct {
		Name, Parent, Hook string
		Answer             response
		Repeat             map[string]int
		Error              []string
	}
	Map struct {
		MapKey  string
		Input   json.RawMessage
		Outputs []json.RawMessage
		Cases   []mapCase
	}
}

type mapCase struct {
	Name, Parent, Hook string
	Untyped            bool
	Answer             response
	Repeat             map[string]int
	Error              []string
}

// response is an answer in JSON.
type response struct {
	Status                json.RawMessage
	Labels, Annotations   map[string]*string
	Children, Attachments []json.RawMessage
	Outputs               []json.RawMessage
	Finalized             bool
	ChildStates           []struct {
		name
		Ready     *bool
		DependsOn []hook.Dependency
	}
	Conditions   []hook.Condition
	Events       []hook.Event
	Results      []hook.Result
	Requirements []hook.RelatedRule
}

type name struct{ APIVersion, Kind, Namespace, Name string }

func readTable(t *testing.T) table {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all table
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestAnswersTable(t *testing.T) {
	all := readTable(t)
	for _, c := range all.Cases {
		t.Run(c.Name, func(t *testing.T) {
			err := all.check(t, c.Parent, c.Hook, c.Answer, c.Repeat)
			compareError(t, c.Error, err)
		})
	}
}

// TestMapAnswersTable checks the answers of map hooks, and those that have marks of their outputs.
func TestMapAnswersTable(t *testing.T) {
	all := readTable(t)
	for _, c := range all.Map.Cases {
		t.Run(c.Name, func(t *testing.T) {
			switch {
			case c.Untyped:
				t.Skip("the SDK's types do not have this answer")
			case c.Hook == "composite" || c.Hook == "decorator":
				compareError(t, c.Error, all.check(t, c.Parent, c.Hook, c.Answer, c.Repeat))
			default:
				compareError(t, c.Error, all.checkMap(t, c))
			}
		})
	}
}

func compareError(t *testing.T, want []string, err error) {
	t.Helper()
	if len(want) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
	for _, part := range want {
		if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(part)) {
			t.Errorf("error %v, want one with %q", err, part)
		}
	}
}

// check returns the error for the answer of a composite or a decorator.
func (all table) check(t *testing.T, parent, kind string, r response, repeat map[string]int) error {
	t.Helper()
	request, err := hook.NewSyncRequest(all.Parents[cmp.Or(parent, "namespaced")], nil)
	if err != nil {
		t.Fatal(err)
	}
	answer := r.sync(repeat)
	if kind == "decorator" {
		_, err = hooktest.CheckDecoration(request, r.decorate(answer), all.Declared...)
	} else {
		_, err = hooktest.Check(request, answer, all.Declared...)
	}
	return err
}

// checkMap returns the error for the answer of a map hook.
func (all table) checkMap(t *testing.T, c mapCase) error {
	t.Helper()
	outputs := make([]any, len(all.Map.Outputs))
	for i, o := range all.Map.Outputs {
		outputs[i] = o
	}
	parent := all.Parents[cmp.Or(c.Parent, "namespaced")]
	request, err := hook.NewMapRequest(parent, all.Map.Input, outputs)
	if err != nil {
		t.Fatal(err)
	}
	if request.MapKey != all.Map.MapKey {
		t.Errorf("the request has the map key %q, want %q", request.MapKey, all.Map.MapKey)
	}
	request.Controller = hook.Object{APIVersion: "metacontroller.k8s.io/v1alpha1", Kind: "MapController", Name: "table"}
	answer := c.Answer.sync(c.Repeat)
	if c.Hook == "tombstone" {
		gone, err := hook.NewTombstoneRequest(parent, outputs)
		if err != nil {
			t.Fatal(err)
		}
		kept := hook.Keep()
		for _, child := range answer.Children {
			var o struct {
				APIVersion, Kind string
				Metadata         struct{ Namespace, Name string }
			}
			if err := json.Unmarshal(child.Object.(json.RawMessage), &o); err != nil {
				t.Fatal(err)
			}
			kept.Outputs = append(kept.Outputs, hook.Object{
				APIVersion: o.APIVersion, Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name,
			})
		}
		_, err = hooktest.CheckTombstone(gone, kept, all.Declared...)
		return err
	}
	request.Finalizing = c.Hook == "finalize"
	_, err = hooktest.CheckMap(request, &hook.MapResponse{
		Outputs: answer.Children, Finalized: c.Answer.Finalized, Events: answer.Events, Results: answer.Results,
		Requirements: answer.Requirements,
	}, all.Declared...)
	return err
}

// sync returns the answer in the SDK's types.
func (r response) sync(repeat map[string]int) *hook.SyncResponse {
	answer := &hook.SyncResponse{Conditions: r.Conditions, Events: r.Events, Results: r.Results,
		Requirements: r.Requirements}
	if r.Status != nil {
		answer.Status = r.Status
	}
	for _, raw := range slices.Concat(r.Children, r.Attachments, r.Outputs) {
		answer.Children = append(answer.Children, r.child(raw))
	}
	for field, n := range repeat {
		switch field {
		case "conditions":
			answer.Conditions = slices.Repeat(answer.Conditions, n)
		case "events":
			answer.Events = slices.Repeat(answer.Events, n)
		case "results":
			answer.Results = slices.Repeat(answer.Results, n)
		case "requirements":
			answer.Requirements = slices.Repeat(answer.Requirements, n)
		}
	}
	return answer
}

func (r response) decorate(a *hook.SyncResponse) *hook.DecorateResponse {
	return &hook.DecorateResponse{
		Labels: r.Labels, Annotations: r.Annotations, Attachments: a.Children, Conditions: a.Conditions, Events: a.Events,
		Results: a.Results, Requirements: a.Requirements,
	}
}

func (r response) child(raw json.RawMessage) hook.Child {
	child := hook.Child{Object: raw}
	var o struct {
		APIVersion, Kind string
		Metadata         struct{ Namespace, Name string }
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return child // a separate case
	}
	id := name{o.APIVersion, o.Kind, o.Metadata.Namespace, o.Metadata.Name}
	for _, state := range r.ChildStates {
		if state.name != id {
			continue
		}
		child.Ready = state.Ready
		child.DependsOn = state.DependsOn
	}
	return child
}

// TestCheck checks answers to requests with objects of some kinds.
func TestCheck(t *testing.T) {
	parent := map[string]any{"apiVersion": "example.com/v1", "kind": "Website", "metadata": map[string]any{"name": "a"}}
	team := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "team"}}
	request, err := hook.NewSyncRequest(parent, []any{team})
	if err != nil {
		t.Fatal(err)
	}
	response := &hook.SyncResponse{Children: []hook.Child{{Object: team}}, Status: map[string]any{"teams": 1}}
	if _, err := hooktest.Check(request, response); err == nil ||
		!strings.Contains(err.Error(), `declare it as "Namespace.v1:Cluster"`) {
		t.Errorf("error %v, want one that names the declaration", err)
	}
	answer, err := hooktest.Check(request, response, "Namespace.v1:Cluster")
	if err != nil || answer.Children[0]["kind"] != "Namespace" || answer.Status["teams"] != json.Number("1") {
		t.Errorf("answer %v, error %v", answer, err)
	}
	request.Finalizing = true
	if _, err := hooktest.Check(request, response, "Namespace.v1:Cluster"); err != nil {
		t.Error(err)
	}
	for _, kind := range []string{"Namespace", "Namespace.v1:cluster", ".v1"} {
		if _, err := hooktest.Check(request, response, kind); err == nil ||
			!strings.Contains(err.Error(), "expected one such as Pod.v1") {
			t.Errorf("kind %q: error %v", kind, err)
		}
	}
}
