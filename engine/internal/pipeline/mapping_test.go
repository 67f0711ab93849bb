package pipeline_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// mapping is a third kind of controller, as small as it can be: for each Page that a parent
// selects, an input, it wants output Pages. A key is the parent and the name of one input (its
// part). Outputs have the name of their input in a label. The key of the whole parent has a status
// and no question. The pipeline runs a mapping as it runs the other kinds.
type mapping struct {
	rules shape.ParentRules
	// silent asks no hook about the outputs of an input that is gone.
	silent bool
}

var _ shape.Shape = mapping{}

const partLabel = "part"

// Observe reads one input and its outputs. The key is gone when both are.
func (m mapping) Observe(in shape.Input) (*plan.Observed, error) {
	parent, err := m.rules.Find(in)
	if parent == nil || err != nil {
		return nil, err
	}
	if in.Key.Part == "" {
		return &plan.Observed{
			Key: in.Key, Parent: parent, Finalizing: m.rules.Departing(parent), Prepare: m.rules.Prepare(parent),
		}, nil
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

// Questions returns the question about one input. For an input that is gone it is a tombstone, and
// none if the mapping is silent.
func (m mapping) Questions(o *plan.Observed) []*hook.Question {
	if o.Key.Part == "" || o.Finalizing && m.silent {
		return nil
	}
	return []*hook.Question{shape.Question("map", nil, o)}
}

func (m mapping) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	switch {
	case in.Observed.Key.Part == "" && in.Observed.Finalizing:
		return &plan.Desired{RemoveFinalizer: m.rules.Finalizer}, nil
	case in.Observed.Key.Part == "":
		return &plan.Desired{Status: map[string]any{"parts": "counted"}}, nil
	case len(answers) == 0:
		return &plan.Desired{}, nil
	}
	return shape.Desired(in, answers, m.rules.Finalizer)
}

// newMapping returns a mapping that selects all Webs.
func newMapping() mapping {
	return mapping{rules: shape.ParentRules{
		Resource: webs, Selected: func(*object.Object) bool { return true },
		Finalizer: "metacontroller.io/compositecontroller-web",
	}}
}

// finalizing returns the mapping with a finalize hook.
func (m mapping) finalizing() mapping {
	m.rules.Finalizes = true
	return m
}

// syncPart syncs one part of the parent, or with an empty part the parent's own key. It returns the
// result and the log.
func syncPart(t *testing.T, a *api, p *pipeline.Pipeline, seen *recorder, part string) (pipeline.Outcome, []string) {
	t.Helper()
	work := item()
	work.Key.Part = part
	_, _ = p.Reconcile(t.Context(), work) // the outcome has the error
	return seen.outcomes[len(seen.outcomes)-1], a.took()
}

// TestThirdKind runs a kind of controller that the pipeline does not know. Each part of a parent is
// created, converges and goes independently.
func TestThirdKind(t *testing.T) {
	a := newAPI(t, web(""), page("red", ""), page("blue", ""))
	part := ""
	s, seen := settings(t, a, newMapping(), func(q *hook.Question) (*hook.Answer, error) {
		if q.Op == hook.Finalize {
			return &hook.Answer{Finalized: true}, nil
		}
		return &hook.Answer{Children: []json.RawMessage{desired(part + "-out")}}, nil
	})
	s.Hooks[hook.Sync].Forget = func(_ types.UID, part string) {
		if part == "" {
			t.Error("the hook forgets the parent, want its part forgotten alone")
		}
	}
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
		outcome, log := syncPart(t, a, p, seen, part)
		if diff := cmp.Diff(step.want, log); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if outcome.Result != step.result || outcome.Err != nil {
			t.Errorf("%s: result %q, %v, want %q", step.name, outcome.Result, outcome.Err, step.result)
		}
	}
}

// TestKeysWithoutQuestion has keys about which no hook is asked: they are planned, written and
// reported like others.
func TestKeysWithoutQuestion(t *testing.T) {
	detached := strings.Replace(page("red-out", ours), `"app":"web"`, `"part":"red"`, 1)
	tests := []struct {
		name, part string
		finalizes  bool
		objects    []string
		want       []string
		finalized  bool
	}{
		{"the parent's own key writes the status", "", false, []string{web("")}, []string{"patch webs/web/status"}, false},
		{"and the finalizer", "", true, []string{web("")}, []string{"patch webs/web", "patch webs/web/status"}, false},
		{"and removes it", "", true, []string{web(deleting + finalizer)}, []string{"patch webs/web"}, true},
		{
			"outputs about which nobody is asked are deleted", "red", false, []string{web(""), detached},
			[]string{"delete pages/red-out"}, false,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t, test.objects...)
			m := newMapping()
			m.rules.Finalizes = test.finalizes
			m.silent = true
			s, seen := settings(t, a, m, func(*hook.Question) (*hook.Answer, error) { panic("no question is expected") })
			outcome, log := syncPart(t, a, pipeline.New(s), seen, test.part)
			if diff := cmp.Diff(test.want, log); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if outcome.Result != "changed" || outcome.Asked || outcome.Finalized != test.finalized {
				t.Errorf("outcome %+v, want changed, without a question, finalized %v", outcome, test.finalized)
			}
		})
	}
}

// TestPartsLeaveTheParentAlone has parts that fail, answer conditions and finish finalizing: the
// parent gets Events, and neither status nor finalizer is written.
func TestPartsLeaveTheParentAlone(t *testing.T) {
	output := strings.Replace(page("red-out", ours), `"app":"web"`, `"part":"red"`, 1)
	synced := strings.Replace(web(""), `"spec"`, `"status":{"conditions":[{"type":"Synced","status":"False"}]},"spec"`, 1)
	tests := []struct {
		name              string
		objects           []string
		answer            func(*hook.Question) (*hook.Answer, error)
		want              []string
		result            string
		failed, finalized bool
	}{
		{
			"an invalid answer", []string{web(""), page("red", "")},
			func(*hook.Question) (*hook.Answer, error) {
				return &hook.Answer{Children: []json.RawMessage{json.RawMessage(`null`)}}, nil
			},
			[]string{"ask sync", "event SyncError"}, string(hook.Invalid), true, false,
		},
		{
			"a hook that asks to come later", []string{web(""), page("red", "")},
			func(*hook.Question) (*hook.Answer, error) {
				return nil, &hook.Error{Kind: hook.Throttled, RetryAfter: time.Hour, Err: errors.New("busy")}
			},
			[]string{"ask sync"}, string(hook.Throttled), false, false,
		},
		{
			"a condition of the parent that no longer holds", []string{synced, page("red", "")},
			func(*hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil },
			[]string{"ask sync"}, "converged", false, false,
		},
		{
			"a finalizer that is no longer needed", []string{web(finalizer), output},
			func(*hook.Question) (*hook.Answer, error) { return &hook.Answer{Finalized: true}, nil },
			[]string{"ask finalize red-out", "delete pages/red-out"}, "changed", false, true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			a := newAPI(t, test.objects...)
			s, seen := settings(t, a, newMapping().finalizing(), test.answer)
			outcome, log := syncPart(t, a, pipeline.New(s), seen, "red")
			if diff := cmp.Diff(test.want, log); diff != "" {
				t.Errorf("log (-want +got):\n%s", diff)
			}
			if outcome.Result != test.result || (outcome.Fault != "") != test.failed || outcome.Finalized != test.finalized {
				t.Errorf("outcome %+v, want %s, failed %v, finalized %v", outcome, test.result, test.failed, test.finalized)
			}
		})
	}
}
