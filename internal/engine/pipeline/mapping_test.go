package pipeline_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"k8s.io/apimachinery/pkg/types"
)

// mapping is a third kind of controller, as small as it can be: for each Page that a parent
// selects, an input, it wants output Pages. A key is the parent and the name of one input (its
// part). Outputs have the name of their input in a label. The pipeline runs a mapping as it runs
// the other kinds.
type mapping struct{ rules shape.ParentRules }

var _ shape.Shape = mapping{}

const partLabel = "part"

// Observe reads one input and its outputs. The key is gone when both are.
func (m mapping) Observe(in shape.Input) (*plan.Observed, error) {
	parent, err := m.rules.Find(in)
	if parent == nil || err != nil {
		return nil, err
	}
	inputs, err := in.Reader.View(pages)
	if err != nil {
		return nil, err
	}
	input := inputs.Get(parent.Namespace(), in.Key.Part)
	isOutput := func(o *object.Object) bool { return o.Labels()[partLabel] == in.Key.Part }
	kinds := []plan.ChildKind{{Resource: pages}}
	outputs, err := shape.Owned(in, parent, kinds, isOutput)
	if err != nil || input == nil && outputs.Len() == 0 {
		return nil, err
	}
	return &plan.Observed{
		Key: in.Key, Parent: parent, Children: outputs, Finalizing: input == nil,
		Scope: plan.Scope{
			ChildKinds: kinds, ParentNamespace: parent.Namespace(), Labels: map[string]string{partLabel: in.Key.Part},
			Owner: plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: webs},
		},
	}, nil
}

// Questions returns the question about one input. For an input that is gone it is a tombstone.
func (m mapping) Questions(o *plan.Observed) []*hook.Question {
	return []*hook.Question{shape.Question("map", nil, o)}
}

func (m mapping) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	return shape.Desired(in, answers, "")
}

// TestThirdKind runs a kind of controller that the pipeline does not know. Each part of a parent is
// created, converges and goes independently.
func TestThirdKind(t *testing.T) {
	a := newAPI(t, web(""), page("red", ""), page("blue", ""))
	m := mapping{shape.ParentRules{Resource: webs, Selected: func(*object.Object) bool { return true }}}
	part := ""
	s, seen := settings(t, a, m, func(q *hook.Question) (*hook.Answer, error) {
		if q.Op == hook.Finalize {
			return &hook.Answer{Finalized: true}, nil
		}
		return &hook.Answer{Children: []json.RawMessage{desired(part + "-out")}}, nil
	})
	s.Hooks[hook.Sync].Forget = func(types.UID) { t.Error("the hook forgets the parent, want its part forgotten alone") }
	p := pipeline.New(s)
	steps := []struct {
		name, part string
		before     func()
		want       []string
		result     string
	}{
		{"an output is created", "red", nil, []string{"ask sync", "post pages/red-out"}, "changed"},
		{"another part has outputs of its own", "blue", nil, []string{"ask sync", "post pages/blue-out"}, "changed"},
		{"a part converges", "red", nil, []string{"ask sync red-out"}, "converged"},
		{
			"the outputs of an input that is gone are deleted", "red", func() { a.stores[pages].Delete(a.get(pages, "red")) },
			[]string{"ask finalize red-out", "delete pages/red-out"}, "changed",
		},
		{"the part is gone", "red", nil, nil, pipeline.Gone},
		{"the other part stays", "blue", nil, []string{"ask sync blue-out"}, "converged"},
	}
	for _, step := range steps {
		if step.before != nil {
			step.before()
		}
		part = step.part
		work := item()
		work.Key.Part = part
		if _, err := p.Reconcile(t.Context(), work); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, a.took()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if got := seen.outcomes[len(seen.outcomes)-1].Result; got != step.result {
			t.Errorf("%s: result %q, want %q", step.name, got, step.result)
		}
	}
}
