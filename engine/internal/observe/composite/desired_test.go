package composite

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// answered is what a shape makes of an answer about the parent web, leaving or not.
func answered(t *testing.T, parent object.Resource, metadata string, answer *hook.Answer) (*plan.Desired, error) {
	t.Helper()
	s := declare(t, parent, withFinalize)
	w := holds(t, web(metadata+finalizers(finalize), selector))
	o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
	if err != nil {
		t.Fatal(err)
	}
	return s.Desired(plan.Input{Observed: o}, []*hook.Answer{answer})
}

func TestStatus(t *testing.T) {
	tests := []struct {
		name   string
		parent object.Resource
		status string
		want   map[string]any
	}{
		{"none says the generation", webs, "", map[string]any{"observedGeneration": int64(4)}},
		{"the generation is put in", webs, `{"a":1}`, map[string]any{"a": int64(1), "observedGeneration": int64(4)}},
		{"in place of the hook's own", webs, `{"observedGeneration":99}`, map[string]any{"observedGeneration": int64(4)}},
		{"none, without a subresource", bare, "", nil},
		{"one, without a subresource", bare, `{"a":1}`, map[string]any{"a": int64(1)}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer := &hook.Answer{}
			if test.status != "" {
				answer.Status = json.RawMessage(test.status)
			}
			d, err := answered(t, test.parent, "", answer)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, d.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSharedStatus has a parent that is no custom resource: its status is another controller's, and
// the hook's is merged into it.
func TestSharedStatus(t *testing.T) {
	ready := []hook.Condition{{Type: "Ready", Status: "True", Reason: "Fine"}}
	tests := []struct {
		name, present string
		answer        hook.Answer
		want          string // empty where the status is left alone
	}{
		{"none", `{"replicas":3}`, hook.Answer{}, ""},
		{
			"some fields",
			`{"replicas":3,"observedGeneration":2}`,
			hook.Answer{Status: json.RawMessage(`{"phase":"up"}`)},
			`{"replicas":3,"observedGeneration":2,"phase":"up"}`,
		},
		{
			"conditions", `{"conditions":[{"type":"A","status":"True","lastUpdateTime":"then"},{"type":"B"}]}`,
			hook.Answer{Status: json.RawMessage(`{"conditions":[{"type":"C"},{"type":"A","status":"False"}]}`)},
			`{"conditions":[{"type":"A","status":"False","lastUpdateTime":"then"},{"type":"B"},{"type":"C"}]}`,
		},
		{"conditions beside none", `{"replicas":3}`, hook.Answer{Conditions: ready}, `{"replicas":3}`},
		{"without one yet", `null`, hook.Answer{Status: json.RawMessage(`{"conditions":[7]}`)}, `{"conditions":[7]}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := declare(t, webs, nil)
			s.custom = func(object.Resource) bool { return false }
			w := holds(t, strings.TrimSuffix(web("", selector), "}")+`,"status":`+test.present+"}")
			o, err := s.Observe(shape.Input{Reader: w, Key: hook.ParentKey(w.Objects[0].Ref())})
			if err != nil {
				t.Fatal(err)
			}
			d, err := s.Desired(plan.Input{Observed: o}, []*hook.Answer{&test.answer})
			if err != nil || d.MarkSynced {
				t.Fatalf("Desired = %+v, %v", d, err)
			}
			var want map[string]any
			if test.want != "" {
				want, err = object.DecodeMap([]byte(test.want))
				if err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, d.Status); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		answer *hook.Answer
		want   string
	}{
		"a status that is a list": {&hook.Answer{Status: json.RawMessage(`[1]`)}, "status"},
		"a status that is a text": {&hook.Answer{Status: json.RawMessage(`"fine"`)}, "status"},
		"a child that is null":    {&hook.Answer{Children: []json.RawMessage{json.RawMessage(`null`)}}, ""},
		"a child of another place": {
			&hook.Answer{Children: []json.RawMessage{json.RawMessage(page("else", "a", app))}}, `Page.v1 "else/a"`,
		},
		"a condition of ours":     {&hook.Answer{Conditions: []hook.Condition{{Type: plan.Synced}}}, `"Synced"`},
		"an Event without reason": {&hook.Answer{Events: []hook.Event{{}}}, ""},
		"a state of a stranger": {
			&hook.Answer{States: []hook.ChildState{{Index: -1, Ref: object.Ref{GVK: pages.GVK, Name: "b"}}}}, `Page.v1 "shop/b"`,
		},
		"a decorator's": {
			&hook.Answer{Children: []json.RawMessage{json.RawMessage(page("shop", "a", app+attached))}}, `Page.v1 "shop/a"`,
		},
		"a child not selected": {
			&hook.Answer{Children: []json.RawMessage{json.RawMessage(page("shop", "a", ""))}}, `Page.v1 "shop/a"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := answered(t, webs, "", test.answer)
			var fault *plan.AnswerError
			if d != nil || !errors.As(err, &fault) || fault.Item != test.want {
				t.Errorf("Desired = %v, %v, want an error of the item %q", d, err, test.want)
			}
		})
	}
}

// TestFinalized removes the finalizer only while the parent departs, and only if the hook has
// finalized.
func TestFinalized(t *testing.T) {
	tests := []struct {
		name, metadata string
		finalized      bool
		want           string
	}{
		{"while the parent stays", "", true, ""},
		{"while it leaves", deleting, true, finalize},
		{"before the hook has finished", deleting, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d, err := answered(t, webs, test.metadata, &hook.Answer{Finalized: test.finalized})
			if err != nil || d.RemoveFinalizer != test.want {
				t.Errorf("Desired = %+v, %v, want to remove %q", d, err, test.want)
			}
		})
	}
}

func TestDesiredCarriesTheAnswer(t *testing.T) {
	d, err := answered(t, webs, "", &hook.Answer{
		Children: []json.RawMessage{
			json.RawMessage(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"a","labels":{"app":"web"}}}`),
		},
		ResyncAfter: time.Minute,
	})
	if err != nil || len(d.Children) != 1 || d.Children[0].Ref().NamespacedName() != "shop/a" ||
		d.Children[0].Kind.Method != plan.OnDelete ||
		d.ResyncAfter != time.Minute {
		t.Errorf("Desired = %+v, %v", d, err)
	}
}

// TestDesiredConditions are what a parent without a status subresource gets a status for.
func TestDesiredConditions(t *testing.T) {
	answer := &hook.Answer{
		Conditions: []hook.Condition{
			{Type: "Ready", Status: "True", Reason: "Fine"},
		},
		Events: []hook.Event{{Reason: "Scaled"}},
	}
	d, err := answered(t, bare, "", answer)
	if err != nil || d.Status == nil || len(d.Status) != 0 || len(d.Conditions) != 1 || len(d.Events) != 1 {
		t.Errorf("Desired = %+v, %v", d, err)
	}
}
