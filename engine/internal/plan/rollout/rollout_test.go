package rollout

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var sets = object.Resource{
	GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Set"},
	Plural:     "sets",
	Namespaced: true,
}

func parse(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

func setOf(spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Set",` +
		`"metadata":{"namespace":"shop","name":"web","uid":"u"},"spec":` + spec + `}`
}

func recorded(name, made, patch, children string) string {
	return `{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"ControllerRevision","metadata":{"namespace":"shop",` +
		`"name":"` + name +
		`","creationTimestamp":"` + made + `"},"parentPatch":` + patch + `,"children":` + children + `}`
}

// revisions is the resource of the records.
var revisions = object.Resource{
	GVK: schema.GroupVersionKind{
		Group:   "metacontroller.k8s.io",
		Version: "v1alpha1",
		Kind:    "ControllerRevision",
	},
	Plural: "controllerrevisions",
}

// TestReadNeedsAKnownList returns no history for an incomplete list of revisions, because all
// children would move immediately.
func TestReadNeedsAKnownList(t *testing.T) {
	if history, err := Read(parse(t, setOf(`{"a":1}`)), Fields{"spec"}, view.List{}); err == nil {
		t.Errorf("Read = %+v, want an error", history)
	}
}

// TestRead finds the parent's revision among the records, with any name and any notation of their
// JSON.
func TestRead(t *testing.T) {
	tests := []struct {
		name    string
		fields  Fields
		spec    string
		records []string
		want    string // "latest | older …", a record by its name, a new one as new
	}{
		{"no record", Fields{"spec"}, `{"a":1}`, nil, "new"},
		{
			"another one",
			Fields{"spec"},
			`{"a":1}`,
			[]string{recorded("x", "2026-01-01T00:00:00Z", `{"spec":{"a":2}}`, `[]`)},
			"new | x",
		},
		{
			"the same one",
			Fields{"spec"},
			`{"a":1,"b":2}`,
			[]string{recorded("x", "2026-01-01T00:00:00Z", `{"spec":{"b":2, "a":1}}`, `[]`)},
			"x",
		},
		{
			"the youngest of the others first",
			Fields{"spec"},
			`{"a":1}`,
			[]string{
				recorded(
					"x",
					"2026-01-01T00:00:00Z",
					`{"spec":{"a":2}}`,
					`[]`,
				),
				recorded("y", "2026-01-02T00:00:00Z", `{"spec":{"a":3}}`, `[]`),
			},
			"new | y x",
		},
		{
			"other fields do not count", Fields{"spec.template"}, `{"replicas":3,"template":{"a":1}}`,
			[]string{recorded("x", "2026-01-01T00:00:00Z", `{"spec":{"template":{"a":1}}}`, `[]`)}, "x",
		},
		{
			"a field that is absent",
			Fields{"spec.template"},
			`{}`,
			[]string{recorded("x", "2026-01-01T00:00:00Z", `{}`, `[]`)},
			"x",
		},
		{
			"a field that was absent", Fields{"spec.template"}, `{"template":null}`,
			[]string{recorded("x", "2026-01-01T00:00:00Z", `{}`, `[]`)}, "new | x",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var records []*object.Object
			for _, text := range test.records {
				records = append(records, parse(t, text))
			}
			history, err := Read(parse(t, setOf(test.spec)), test.fields, viewtest.List(revisions, records...))
			if err != nil {
				t.Fatal(err)
			}
			if got := names(history); got != test.want {
				t.Errorf("history is %s, want %s", got, test.want)
			}
		})
	}
}

func names(history History) string {
	var all []string
	for _, r := range history {
		if r.Object == nil {
			all = append(all, "new")
			continue
		}
		all = append(all, r.Object.Name())
	}
	return strings.TrimSuffix(all[0]+" | "+strings.Join(all[1:], " "), " | ")
}

func TestReadNamesABrokenRecord(t *testing.T) {
	for name, record := range map[string]string{
		"no object":        recorded("x", "2026-01-01T00:00:00Z", `[1]`, `[]`),
		"null":             recorded("x", "2026-01-01T00:00:00Z", `null`, `[]`),
		"children no list": recorded("x", "2026-01-01T00:00:00Z", `{}`, `{}`),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(parse(t, setOf(`{}`)), Fields{"spec"}, viewtest.List(revisions, parse(t, record)))
			if err == nil || !strings.Contains(err.Error(), `ControllerRevision.metacontroller.k8s.io/v1alpha1 "shop/x"`) {
				t.Errorf("error %v, want one that names the ControllerRevision", err)
			}
		})
	}
}

// TestParent returns the parent at a revision: the revision's values of some fields, and the
// parent's own values of all others.
func TestParent(t *testing.T) {
	tests := []struct{ name, spec, patch, want string }{
		{
			"another template",
			`{"replicas":5,"template":{"a":1,"b":1}}`,
			`{"spec":{"template":{"a":2}}}`,
			`{"replicas":5,"template":{"a":2}}`,
		},
		{"it had none", `{"replicas":5,"template":{"a":1}}`, `{}`, `{"replicas":5}`},
		{"it has none any more", `{"replicas":5}`, `{"spec":{"template":{"a":2}}}`, `{"replicas":5,"template":{"a":2}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			patch, err := object.DecodeMap([]byte(test.patch))
			if err != nil {
				t.Fatal(err)
			}
			got, err := Fields{"spec.template"}.Parent(parse(t, setOf(test.spec)), &Revision{Patch: patch})
			if err != nil {
				t.Fatal(err)
			}
			if spec, _ := got.Field("spec"); string(spec) != test.want {
				t.Errorf("spec is %s, want %s", spec, test.want)
			}
		})
	}
}

func TestName(t *testing.T) {
	history, err := Read(parse(t, setOf(`{"b":1,"a":2}`)), Fields{"spec"}, viewtest.List(revisions))
	if err != nil {
		t.Fatal(err)
	}
	got := history[0].Name(sets, "u")
	// clusters have this name: it must not change
	if want := "sets.example.com-088232a670add4627b8c12357652fcbdefca4de9"; got != want {
		t.Errorf("name %s, want %s", got, want)
	}
	if again := history[0].Name(sets, "u"); again != got {
		t.Errorf("then %s, want the same", again)
	}
	if other := history[0].Name(sets, "v"); other == got {
		t.Errorf("%s for another parent, too", other)
	}
	core := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces"}
	if name := history[0].Name(core, "u"); !strings.HasPrefix(name, "namespaces.core-") {
		t.Errorf("name %s of the core group", name)
	}
}

func TestChildren(t *testing.T) {
	members := map[Member]bool{{"", "Pod", "b"}: true, {"", "Pod", "a"}: true, {"apps", "Deployment", "x/y"}: true}
	want := []any{
		map[string]any{"apiGroup": "apps", "kind": "Deployment", "names": []any{"x/y"}},
		map[string]any{"apiGroup": "", "kind": "Pod", "names": []any{"a", "b"}},
	}
	if diff := cmp.Diff(want, Children(members)); diff != "" {
		t.Errorf("children (-want +got):\n%s", diff)
	}
}

func TestChecks(t *testing.T) {
	text := func(s string) *string { return &s }
	ready := []ConditionCheck{{Type: "Ready", Status: text("True")}}
	tests := []struct {
		name   string
		checks Checks
		status string
		want   string
	}{
		{"nothing is asked", Checks{}, `{}`, ""},
		{
			"it has it",
			Checks{Conditions: ready},
			`{"conditions":[{"type":"A","status":"False"},{"type":"Ready","status":"True"}]}`,
			"",
		},
		{"it has it not", Checks{Conditions: ready}, `{"conditions":[]}`, "has no condition Ready"},
		{"no status", Checks{Conditions: ready}, ``, "has no condition Ready"},
		{
			"another status",
			Checks{Conditions: ready},
			`{"conditions":[{"type":"Ready","status":"False"}]}`,
			`has condition Ready "False", expected "True"`,
		},
		{
			"any status",
			Checks{Conditions: []ConditionCheck{{Type: "Ready"}}},
			`{"conditions":[{"type":"Ready","status":"False"}]}`,
			"",
		},
		{
			"another reason", Checks{Conditions: []ConditionCheck{{Type: "Ready", Reason: text("Up")}}},
			`{"conditions":[{"type":"Ready","reason":"Down"}]}`, `has condition Ready with reason "Down", expected "Up"`,
		},
		{"seen by its controller", Checks{Observed: true}, `{"observedGeneration":3}`, ""},
		{
			"not seen by its controller",
			Checks{Observed: true},
			`{"observedGeneration":2}`,
			"has status.observedGeneration 2, expected 3",
		},
		{"not asked", Checks{}, `{"observedGeneration":2}`, ""},
		{"it counts none", Checks{Observed: true}, `{}`, ""},
		{"unreadable", Checks{}, `{"conditions":{}}`, "has a status that cannot be checked"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			child := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","generation":3}`
			if test.status != "" {
				child += `,"status":` + test.status
			}
			got := test.checks.Lacks(parse(t, child+"}"))
			if got != test.want && (test.want == "" || !strings.HasPrefix(got, test.want)) {
				t.Errorf("lacks %q, want %q", got, test.want)
			}
		})
	}
}

func ExampleHistory_Next() {
	pod := func(i int) Member { return Member{Kind: "Pod", Name: fmt.Sprint("web-", i)} }
	history := History{{}, {Members: map[Member]bool{pod(0): true, pod(1): true}}}
	step := history.Next(World{
		Latest:   []Child{{Member: pod(0)}, {Member: pod(1)}},
		Previous: []map[Member]bool{{pod(0): true, pod(1): true}},
	})
	fmt.Println(step.State, step.Message)
	fmt.Println(Children(step.Members[0]), Children(step.Members[1]))
	// Output:
	// RolloutProgressing Pod "web-0" moves to the latest revision
	// [map[apiGroup: kind:Pod names:[web-0]]] [map[apiGroup: kind:Pod names:[web-1]]]
}
