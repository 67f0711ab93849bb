package answers

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/mapping"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mapAnswers is the part of the table about map hooks.
type mapAnswers struct {
	MapKey  string
	Input   json.RawMessage
	Outputs []json.RawMessage
	Cases   []struct {
		Name, Parent, Hook string
		Answer             map[string]json.RawMessage
		Repeat             map[string]int
		Error              []string
	}
}

// TestMapAnswersTable validates each answer of a map hook in the engine, as TestAnswersTable does.
func TestMapAnswersTable(t *testing.T) {
	table := readAnswers(t)
	for _, c := range table.Map.Cases {
		t.Run(c.Name, func(t *testing.T) {
			for field, n := range c.Repeat {
				var items []json.RawMessage
				if err := json.Unmarshal(c.Answer[field], &items); err != nil {
					t.Fatal(err)
				}
				c.Answer[field] = encode(t, slices.Repeat(items[:1], n))
			}
			parent := decodeWith(t, table.Parents[cmp.Or(c.Parent, "namespaced")], nil)
			var err error
			switch answer := encode(t, c.Answer); c.Hook {
			case "composite":
				err = judge(t, compositeOf(t, table.Declared, parent), parent, answer)
			case "decorator":
				err = judge(t, decoratorOf(t, table.Declared, parent), parent, answer)
			default:
				err = table.judgeMap(t, parent, hook.Op(c.Hook), answer)
			}
			if len(c.Error) == 0 && err != nil {
				t.Errorf("error %v, want none", err)
			}
			for _, part := range c.Error {
				if err == nil || !strings.Contains(strings.ToLower(err.Error()), strings.ToLower(part)) {
					t.Errorf("error %v, want one with %q", err, part)
				}
			}
		})
	}
}

// decodeWith decodes an object with further metadata.
func decodeWith(t *testing.T, raw json.RawMessage, metadata map[string]any) *object.Object {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(raw, &body); err != nil {
		t.Fatal(err)
	}
	maps.Copy(body["metadata"].(map[string]any), metadata)
	o, err := object.Decode(encode(t, body))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// judgeMap returns the engine's error for an answer of a map hook, or nil if the engine makes a
// plan. An empty operation is map.
func (a answers) judgeMap(t *testing.T, parent *object.Object, op hook.Op, answer []byte) error {
	t.Helper()
	if op == hook.Finalize {
		parent = decodeWith(t, parent.Raw(), map[string]any{
			"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": []string{mapping.FinalizerPrefix + "table"},
		})
	}
	controller := true
	owned := map[string]any{
		"ownerReferences": []metav1.OwnerReference{{
			APIVersion: parent.GVK().GroupVersion().String(), Kind: parent.GVK().Kind, Name: parent.Name(), UID: parent.UID(),
			Controller: &controller,
		}},
		"labels":      map[string]string{plan.MapKey: mapping.Hash(a.Map.MapKey)},
		"annotations": map[string]string{plan.MapKey: a.Map.MapKey, plan.MapController: "table"},
	}
	objects := []*object.Object{parent}
	for _, raw := range a.Map.Outputs {
		objects = append(objects, decodeWith(t, raw, owned))
	}
	if op != hook.Tombstone {
		objects = append(objects, decodeWith(t, a.Map.Input, nil))
	}
	judged := mappingOf(t, a.Declared, parent, op == hook.Finalize)
	key := hook.Key{Parent: parent.Ref(), Part: a.Map.MapKey}
	observed, err := judged.Observe(shape.Input{Reader: viewtest.NewReader(objects...), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	q := judged.Questions(observed)[0]
	if want := cmp.Or(op, hook.Map); q.Op != want {
		t.Fatalf("the question is %s, want %s", q.Op, want)
	}
	return judgeAnswer(t, judged, observed, q, answer)
}

// mappingOf makes a map controller of the parent's kind with Pods as inputs.
func mappingOf(t *testing.T, declared []string, parent *object.Object, finalizes bool) shape.Shape {
	t.Helper()
	c := &v1alpha1.MapController{ObjectMeta: metav1.ObjectMeta{Name: "table"}}
	c.Spec.Hooks = &v1alpha1.MapHooks{Map: &v1alpha1.Hook{}, Tombstone: &v1alpha1.Hook{}}
	if finalizes {
		c.Spec.Hooks.Finalize = &v1alpha1.Hook{}
	}
	c.Spec.InputResources = []v1alpha1.InputResourceRule{
		{ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"}},
	}
	c.Spec.OutputResources = make([]v1alpha1.OutputResourceRule, len(declared))
	o := decodeWith(t, json.RawMessage(
		`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"MapController","metadata":{"name":"table"}}`), nil)
	judged, err := mapping.New(o, c, mapping.Resources{
		Parent: resourceOf(parent), Inputs: resources([]string{"Pod.v1"}), Outputs: resources(declared),
		Namespaces: resources([]string{"Namespace.v1:Cluster"})[0],
	})
	if err != nil {
		t.Fatal(err)
	}
	return judged
}
