package mapping

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// served are the resources of the tests' API server.
var served = []object.Resource{
	namespaced("example.com/v1", "Copy", "copies"),
	clusterScoped("example.com/v1", "ClusterCopy", "clustercopies"),
	namespaced("example.com/v1", "Page", "pages"),
	namespaced("v1", "ConfigMap", "configmaps"),
	namespaced("v1", "Secret", "secrets"),
	clusterScoped("v1", "Namespace", "namespaces"),
}

func namespaced(apiVersion, kind, plural string) object.Resource {
	r := clusterScoped(apiVersion, kind, plural)
	r.Namespaced = true
	return r
}

func clusterScoped(apiVersion, kind, plural string) object.Resource {
	return object.Resource{GVK: schema.FromAPIVersionAndKind(apiVersion, kind), Plural: plural}
}

func find(rule v1alpha1.ResourceRule) (object.Resource, bool) {
	for _, r := range served {
		if r.GVR() == rule.GVR() {
			return r, true
		}
	}
	return object.Resource{}, false
}

// declare reads a MapController and returns its shape, as the supervisor does.
func declare(t testing.TB, text string) (*Shape, error) {
	t.Helper()
	var c v1alpha1.MapController
	if err := yaml.UnmarshalStrict([]byte(text), &c); err != nil {
		t.Fatalf("controller.yaml: %v", err)
	}
	var r Resources
	found := false
	r.Parent, found = find(c.Spec.ParentResource.ResourceRule)
	if !found {
		t.Fatalf("the parent resource %s is not served", c.Spec.ParentResource.ResourceRule)
	}
	r.Namespaces, _ = find(v1alpha1.ResourceRule{APIVersion: "v1", Resource: "namespaces"})
	for _, rule := range c.Spec.InputResources {
		if input, found := find(rule.ResourceRule); found {
			r.Inputs = append(r.Inputs, input)
		}
	}
	for _, rule := range c.Spec.OutputResources {
		output, found := find(rule.ResourceRule)
		if !found {
			t.Fatalf("the output resource %s is not served", rule.ResourceRule)
		}
		r.Outputs = append(r.Outputs, output)
	}
	return New(decodeYAML(t, text), &c, r)
}

func decodeYAML(t testing.TB, text string) *object.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.Decode(data)
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return o
}

// documents reads objects, and adds the metadata that every object has. The field part makes an
// object the parent's output of that part; the field applied, too, adds the last-applied state.
func documents(t testing.TB, text, controller string, owner plan.Owner) []*object.Object {
	t.Helper()
	var objects []*object.Object
	for document := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var body map[string]any
		if err := yaml.Unmarshal([]byte(document), &body); err != nil {
			t.Fatalf("world.yaml: %v", err)
		}
		metadata := body["metadata"].(map[string]any)
		for field, value := range map[string]any{"uid": fmt.Sprint(metadata["name"], "-uid"), "resourceVersion": "1"} {
			if _, given := metadata[field]; !given {
				metadata[field] = value
			}
		}
		if part, ok := body["part"].(string); ok {
			markOutput(t, body, part, controller, owner)
		}
		o, err := object.FromMap(body)
		if err != nil {
			t.Fatalf("world.yaml: %v", err)
		}
		objects = append(objects, o)
	}
	return objects
}

// markOutput gives a body the owner and those marks of an output of a part that it does not have.
func markOutput(t testing.TB, body map[string]any, part, controller string, owner plan.Owner) {
	t.Helper()
	metadata := body["metadata"].(map[string]any)
	delete(body, "part")
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner.GVK.GroupVersion().String(), "kind": owner.GVK.Kind, "name": owner.Name,
		"uid": string(owner.UID), "controller": true, "blockOwnerDeletion": true,
	}}
	marks := map[string]map[string]any{
		"labels":      {plan.MapKey: Hash(part)},
		"annotations": {plan.MapKey: part, plan.MapController: controller},
	}
	if applied, ok := body["applied"].(bool); ok {
		delete(body, "applied")
		if applied {
			state, err := json.Marshal(map[string]any{"metadata": marks})
			if err != nil {
				t.Fatal(err)
			}
			set(metadata, "annotations", object.LastAppliedAnnotation, string(state))
		}
	}
	for field, values := range marks {
		for key, value := range values {
			set(metadata, field, key, value)
		}
	}
}

// set sets a label or an annotation that is absent. A null removes it.
func set(metadata map[string]any, field, key string, value any) {
	values, ok := metadata[field].(map[string]any)
	if !ok {
		values = map[string]any{}
		metadata[field] = values
	}
	if present, there := values[key]; !there {
		values[key] = value
	} else if present == nil {
		delete(values, key)
	}
}

// answerFile is an answer in a file.
type answerFile struct {
	Outputs            []json.RawMessage
	Status             json.RawMessage
	Conditions         []hook.Condition
	Finalized          bool
	ResyncAfterSeconds float64
}

func keyOf(parent *object.Object, part string) hook.Key {
	return hook.Key{Parent: parent.Ref(), Part: part}
}

// observe observes one part.
func observe(s *Shape, r shape.Input) (*plan.Observed, []*hook.Question, error) {
	o, err := s.Observe(r)
	if err != nil || o == nil {
		return nil, nil, err
	}
	if o.SkipChildren {
		return o, nil, nil
	}
	if err := o.Check(); err != nil {
		return nil, nil, err
	}
	return o, s.Questions(o), nil
}

// listParts returns the parts of a parent: its inputs, and the parts of its outputs without an
// input, except those that cannot be decided. It also returns the number of the latter.
func listParts(s *Shape, r view.Reader, parent *object.Object) (parts []string, detached int, err error) {
	inputs, err := s.namedInputs(r, parent)
	if err != nil {
		return nil, 0, err
	}
	known := map[string]bool{}
	for part := range inputs {
		parts = append(parts, part)
		known[part] = true
	}
	var without []string
	for _, kind := range s.outputKinds {
		v, err := r.View(kind.Resource)
		if err != nil {
			return nil, 0, err
		}
		for o := range v.OwnedBy(view.OwnerOf(parent)).All() {
			if part, ok := s.partOf(o); ok && !known[part] && !s.mayHaveInput(part) {
				without = append(without, part)
				known[part] = true
			}
		}
	}
	slices.Sort(without)
	return append(parts, without...), len(without), nil
}
