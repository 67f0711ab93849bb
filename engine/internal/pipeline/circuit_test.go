package pipeline

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func gvk(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: kind}
}

func TestRewrites(t *testing.T) {
	pages := func(name string) object.Ref { return object.Ref{GVK: gvk("Page"), Name: name} }
	value := "x"
	tests := []struct {
		name    string
		actions []plan.Action
		want    []circuit.Field
	}{
		{"nothing", nil, nil},
		{"creates alone", []plan.Action{{Verb: plan.Create, Ref: pages("a")}}, nil},
		{"deletes alone", []plan.Action{{Verb: plan.Delete, Ref: pages("a")}}, nil},
		{
			"others in their place",
			[]plan.Action{
				{Verb: plan.Delete, Ref: pages("a")},
				{Verb: plan.Delete, Ref: pages("b")},
				{Verb: plan.Create, Ref: pages("c")},
			},
			[]circuit.Field{{Ref: object.Ref{GVK: gvk("Page")}, Path: "metadata.name"}},
		},
		{
			"another kind",
			[]plan.Action{{Verb: plan.Delete, Ref: pages("a")}, {Verb: plan.Create, Ref: object.Ref{GVK: gvk("Film")}}},
			nil,
		},
		{"an update", []plan.Action{{Verb: plan.Update, Ref: pages("a"), Fields: []string{"a", "b"}}},
			[]circuit.Field{{Ref: pages("a"), Path: "a"}, {Ref: pages("a"), Path: "b"}}},
		{
			"a recreation",
			[]plan.Action{{Verb: plan.Delete, Ref: pages("a"), Fields: []string{"a"}}},
			[]circuit.Field{{Ref: pages("a"), Path: "a"}},
		},
		{"a record of a revision", []plan.Action{{Verb: plan.Update, Ref: pages("a")}}, nil},
		{"a label", []plan.Action{{Verb: plan.PatchMetadata, Ref: pages("a"), Labels: map[string]*string{"l": &value}}},
			[]circuit.Field{{Ref: pages("a"), Path: "metadata.labels.l"}}},
		{
			"the last write",
			[]plan.Action{{Verb: plan.PatchMetadata, Ref: pages("a"), Finalizer: "f", Labels: map[string]*string{"l": &value}}},
			nil,
		},
		{"a finalizer that somebody takes away", []plan.Action{{Verb: plan.AddFinalizer, Ref: pages("a")}},
			[]circuit.Field{{Ref: pages("a"), Path: "metadata.finalizers"}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if d := cmp.Diff(test.want, rewrites(test.actions)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// TestValues shows values that are not secret.
func TestValues(t *testing.T) {
	m := func(path string, v any) map[string]any {
		return map[string]any{"spec": map[string]any{path: v}}
	}
	tests := []struct {
		name, kind, path string
		before, after    map[string]any
		want             string
	}{
		{"numbers", "Page", "spec.replicas", m("replicas", int64(1)), m("replicas", int64(2)), "observed 1, desired 2"},
		{"text", "Page", "spec.color", m("color", "red"), m("color", "bl\tue"), `observed "red", desired "bl\tue"`},
		{"a field inside", "Page", "spec", m("on", true), m("on", false), "observed true, desired false"},
		{
			"an absent value",
			"Page",
			"spec.on",
			map[string]any{"spec": map[string]any{}},
			m("on", false),
			"observed nothing, desired false",
		},
		{"a Secret", "Secret", "spec.replicas", m("replicas", int64(1)), m("replicas", int64(2)), ""},
		{"a password", "Page", "spec.adminPassword", m("adminPassword", "a"), m("adminPassword", "b"), ""},
		{"a number that may be a password", "Page", "spec.pin", m("pin", int64(1234)), m("pin", int64(5678)), ""},
		{"a URL with a user", "Page", "spec.db", m("db", "a"), m("db", "postgres://u:p@db"), ""},
		{"an assignment", "Page", "spec.options", m("options", "a"), m("options", "user=u pw=hunter2"), ""},
		{"the beginning of a long text", "Page", "spec.text", m("text", "a"), m("text", strings.Repeat("x", maxValue+1)), ""},
		{
			"lists",
			"Page",
			"spec.list",
			m("list", []any{}),
			m("list", []any{"x"}),
			"observed a list of 0, desired a list of 1",
		},
		{"a field that does not differ", "Page", "spec.other", m("on", true), m("on", false), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := diff{Difference: plan.Difference{Path: test.path}, unknown: true}
			d.find(test.before, test.after)
			if got := d.values(gvk(test.kind)); got != test.want {
				t.Errorf("values = %q, want %q", got, test.want)
			}
		})
	}
}

// TestFlappingParent has a hook that answers differently each time write the parent, and checks
// that the circuit ends it: by a status, and by labels, which are no change by a user. A user's
// change ends the pause.
func TestFlappingParent(t *testing.T) {
	const limit = 10
	n := 0
	answers := map[string]func(*object.Object) (*plan.Desired, error){
		"status": func(*object.Object) (*plan.Desired, error) {
			n++
			return &plan.Desired{Status: map[string]any{"n": int64(n)}}, nil
		},
		"metadata": func(*object.Object) (*plan.Desired, error) {
			n++
			text := strconv.Itoa(n)
			return &plan.Desired{Labels: map[string]*string{"n": &text}}, nil
		},
	}
	for name, desired := range answers {
		t.Run(name, func(t *testing.T) {
			w, p := owner(t, desired)
			p.Circuit = circuit.Config{Limit: limit, Pause: time.Hour}
			run := func() {
				for range 3 * limit {
					// the writes and the outcome show the result
					_, _ = p.Reconcile(t.Context(), event(queue.CauseObject))
				}
			}
			run()
			writes := func() int {
				defer func() { w.writes = nil }()
				return len(slices.DeleteFunc(slices.Clone(w.writes), func(s string) bool { return s != name }))
			}
			if got := writes(); got < limit || got > limit+1 { // the condition is a write of the status
				t.Errorf("%d writes, want %d", got, limit)
			}
			if c := w.conditions(); !slices.Contains(c, "Synced=False@1") {
				t.Errorf("conditions %v", c)
			}
			if got := p.states.openCircuits(); got != 1 {
				t.Errorf("%d circuits are open", got)
			}
			events := p.Events.(*eventLog).lines
			if len(events) != 1 || !strings.Contains(events[0], "the circuit is open: ") {
				t.Errorf("Events %q", events)
			}
			w.edit(func(m map[string]any) { m["metadata"].(map[string]any)["generation"] = int64(2) })
			run()
			if got := writes(); got < limit || got > limit+1 {
				t.Errorf("%d writes after a change by a user, want %d", got, limit)
			}
		})
	}
}

// TestEchoBesideAnOpenCircuit: the event of the condition that reports an open circuit is no sync,
// and the circuit stays counted.
func TestEchoBesideAnOpenCircuit(t *testing.T) {
	n := int64(0)
	w, p := owner(t, func(*object.Object) (*plan.Desired, error) {
		n++
		return &plan.Desired{Status: map[string]any{"n": n}}, nil
	})
	var seen outcomes
	p.Circuit = circuit.Config{Limit: 3, Pause: time.Hour}
	p.Recorder = &seen
	for p.states.openCircuits() == 0 {
		_, _ = p.Reconcile(t.Context(), event(queue.CauseObject)) // the outcomes show the result
	}
	echo := event(queue.CauseObject)
	echo.Count, echo.Causes = 1, []queue.Cause{
		{Kind: queue.CauseObject, Ref: echo.Key.Parent, ResourceVersion: w.parent.ResourceVersion()},
	}
	if _, err := p.Reconcile(t.Context(), echo); err != nil {
		t.Fatal(err)
	}
	if last := seen[len(seen)-1]; last.Result != "echo" || last.OpenCircuits != 1 {
		t.Errorf("result %q with %d open circuits, want an echo with 1", last.Result, last.OpenCircuits)
	}
}

// edit changes the parent as a user does.
func (w *fixture) edit(change func(map[string]any)) {
	m, err := w.parent.Map()
	if err != nil {
		w.t.Fatal(err)
	}
	change(m)
	w.parent, err = object.FromMap(m)
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestPeersInTurn names the peers of the hook in the message of an opened circuit if several have
// answered since rewrites were counted.
func TestPeersInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		before, counted []string
		want            string
	}{
		"one":                     {[]string{"grpc"}, []string{"grpc", "grpc"}, ""},
		"one that has no name":    {nil, []string{"", ""}, ""},
		"another one long before": {[]string{"webhook", "grpc"}, []string{"grpc"}, ""},
		"two":                     {[]string{"grpc"}, []string{"webhook", "grpc"}, `["webhook" "grpc"]`},
		"more than are kept":      {nil, []string{"1", "2", "3", "4", "5"}, `["2" "3" "4" "5"]`},
	} {
		t.Run(name, func(t *testing.T) {
			state := &circuitState{}
			for _, by := range c.before {
				state.answered(by)
			}
			state.breaker = &circuit.Breaker{}
			for _, by := range c.counted {
				state.answered(by)
			}
			r := &run{Pipeline: &Pipeline{}, state: &parentState{circuit: *state}}
			got := r.explain(t.Context(), circuit.Trip{Field: circuit.Field{Ref: object.Ref{GVK: gvk("Page")}}}, diff{})
			_, got, _ = strings.Cut(got, "; the hook was answered by ")
			got, _, _ = strings.Cut(got, " in turn")
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
