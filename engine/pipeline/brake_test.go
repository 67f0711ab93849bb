package pipeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/circuit"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/plan"
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
		{"others in their place", []plan.Action{{Verb: plan.Delete, Ref: pages("a")}, {Verb: plan.Delete, Ref: pages("b")}, {Verb: plan.Create, Ref: pages("c")}},
			[]circuit.Field{{Ref: object.Ref{GVK: gvk("Page")}, Path: "metadata.name"}}},
		{"another kind", []plan.Action{{Verb: plan.Delete, Ref: pages("a")}, {Verb: plan.Create, Ref: object.Ref{GVK: gvk("Film")}}}, nil},
		{"an update", []plan.Action{{Verb: plan.Update, Ref: pages("a"), Fields: []string{"a", "b"}}},
			[]circuit.Field{{Ref: pages("a"), Path: "a"}, {Ref: pages("a"), Path: "b"}}},
		{"a recreation", []plan.Action{{Verb: plan.Delete, Ref: pages("a"), Fields: []string{"a"}}}, []circuit.Field{{Ref: pages("a"), Path: "a"}}},
		{"a record of a revision", []plan.Action{{Verb: plan.Update, Ref: pages("a")}}, nil},
		{"a label", []plan.Action{{Verb: plan.Decorate, Ref: pages("a"), Labels: map[string]*string{"l": &value}}},
			[]circuit.Field{{Ref: pages("a"), Path: "metadata.labels.l"}}},
		{"the last write", []plan.Action{{Verb: plan.Decorate, Ref: pages("a"), Finalizer: "f", Labels: map[string]*string{"l": &value}}}, nil},
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

// TestValues shows what is no secret.
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
		{"text", "Page", "spec.color", m("color", "red"), m("color", "blue\n"), `observed "red", desired "blue"`},
		{"a field inside", "Page", "spec", m("on", true), m("on", false), "observed true, desired false"},
		{"an absent value", "Page", "spec.on", map[string]any{"spec": map[string]any{}}, m("on", false), "observed nothing, desired false"},
		{"a Secret", "Secret", "spec.replicas", m("replicas", int64(1)), m("replicas", int64(2)), ""},
		{"a password", "Page", "spec.adminPassword", m("adminPassword", "a"), m("adminPassword", "b"), ""},
		{"lists", "Page", "spec.list", m("list", []any{}), m("list", []any{"x"}), "observed a list of 0, desired a list of 1"},
		{"a field that does not differ", "Page", "spec.other", m("on", true), m("on", false), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := diff{path: test.path, unknown: true}
			d.find(test.before, test.after)
			if got := d.values(gvk(test.kind)); got != test.want {
				t.Errorf("values = %q, want %q", got, test.want)
			}
		})
	}
}
