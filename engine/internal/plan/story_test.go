package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/storytest"
	"github.com/hookloop/hookloop/engine/object"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// TestStories plans the files in testdata. Each begins with a sentence about the situation; its
// sections are
//
//	scope.yaml     the declared kinds with their methods, and the stamps and the selector of children
//	parent.yaml    the parent, if it is not the usual one (Shop "shop/web")
//	observed.yaml  the parent's children; absent uid, resourceVersion and owner are added
//	answer.json    the desired children as the hook answered
//	states.yaml    the child states of the answer; "finalizer" is a finalizer to remove
//	plan           the actions with their bodies and the counts, or the error
func TestStories(t *testing.T) {
	storytest.Run(t, "plan", tell)
}

// scopeFile is the content of scope.yaml.
type scopeFile struct {
	Children []struct {
		APIVersion, Kind, Resource string
		Cluster                    bool
		Method                     plan.Method
	}
	Labels, Annotations map[string]string
	Selector            *metav1.LabelSelector
}

func tell(t *testing.T, archive *txtar.Archive) string {
	parent := parentOf(t, storytest.Section(archive, "parent.yaml"))
	observed := &plan.Observed{Parent: parent, Scope: scopeOf(t, parent, storytest.Section(archive, "scope.yaml"))}
	observed.Children = complete(observed.Scope, childrenOf(t, parent, storytest.Section(archive, "observed.yaml"))...)
	answer := &hook.Answer{Children: itemsOf(t, storytest.Section(archive, "answer.json"))}
	desired := readStates(t, answer, storytest.Section(archive, "states.yaml"))
	var err error
	desired.Children, err = plan.Children(plan.Input{Observed: observed}, answer)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	result, err := plan.Make(plan.Input{Observed: observed}, desired)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	return show(t, result)
}

// readStates reads states.yaml into an answer, and returns the rest of the desired state.
func readStates(t testing.TB, answer *hook.Answer, text string) *plan.Desired {
	t.Helper()
	var file struct {
		Finalizer string
		States    []struct {
			Child     int
			Ready     *bool
			DependsOn []struct{ APIVersion, Kind, Namespace, Name, Condition string }
		}
	}
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatalf("states.yaml: %v", err)
	}
	for _, s := range file.States {
		state := hook.ChildState{Index: s.Child, Ready: s.Ready}
		for _, d := range s.DependsOn {
			state.DependsOn = append(state.DependsOn,
				hook.Dependency{Ref: refOf(d.APIVersion, d.Kind, d.Namespace, d.Name), Condition: d.Condition})
		}
		answer.States = append(answer.States, state)
	}
	return &plan.Desired{RemoveFinalizer: file.Finalizer}
}

func refOf(apiVersion, kind, namespace, name string) object.Ref {
	return object.Ref{GVK: schema.FromAPIVersionAndKind(apiVersion, kind), Namespace: namespace, Name: name}
}

const usualParent = `{apiVersion: example.com/v1, kind: Shop, metadata: {name: web, namespace: shop, uid: shop-uid}}`

func parentOf(t testing.TB, text string) *object.Object {
	if text == "" {
		text = usualParent
	}
	return decodeYAML(t, text)
}

func scopeOf(t testing.TB, parent *object.Object, text string) plan.Scope {
	t.Helper()
	var file scopeFile
	if err := yaml.UnmarshalStrict([]byte(text), &file); err != nil {
		t.Fatalf("scope.yaml: %v", err)
	}
	scope := plan.Scope{
		Owner:           plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID()},
		ParentNamespace: parent.Namespace(), Labels: file.Labels, Annotations: file.Annotations,
	}
	for _, c := range file.Children {
		scope.ChildKinds = append(scope.ChildKinds, plan.ChildKind{Method: c.Method, Resource: object.Resource{
			GVK: schema.FromAPIVersionAndKind(c.APIVersion, c.Kind), Plural: c.Resource, Namespaced: !c.Cluster,
		}})
	}
	if file.Selector == nil {
		return scope
	}
	selector, err := metav1.LabelSelectorAsSelector(file.Selector)
	if err != nil {
		t.Fatalf("scope.yaml: %v", err)
	}
	scope.Selector = selector
	return scope
}

// childrenOf reads observed children, and adds the metadata that every child has.
func childrenOf(t testing.TB, parent *object.Object, text string) []*object.Object {
	t.Helper()
	var children []*object.Object
	for document := range strings.SplitSeq(text, "---\n") {
		if strings.TrimSpace(document) == "" {
			continue
		}
		var body map[string]any
		if err := yaml.Unmarshal([]byte(document), &body); err != nil {
			t.Fatalf("observed.yaml: %v", err)
		}
		metadata := body["metadata"].(map[string]any)
		for field, value := range map[string]any{
			"uid": fmt.Sprint(metadata["name"], "-uid"), "resourceVersion": "1",
			"ownerReferences": []any{map[string]any{
				"apiVersion": parent.GVK().GroupVersion().String(), "kind": parent.GVK().Kind, "name": parent.Name(),
				"uid": string(parent.UID()), "controller": true, "blockOwnerDeletion": true,
			}},
		} {
			if _, given := metadata[field]; !given {
				metadata[field] = value
			}
		}
		o, err := object.FromMap(body)
		if err != nil {
			t.Fatalf("observed.yaml: %v", err)
		}
		children = append(children, o)
	}
	return children
}

func itemsOf(t testing.TB, text string) []json.RawMessage {
	t.Helper()
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(text), &items); err != nil {
		t.Fatalf("answer.json: %v", err)
	}
	return items
}

func decodeYAML(t testing.TB, text string) *object.Object {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// show lists a plan: each action on a line, followed by its preconditions and its body.
func show(t *testing.T, result plan.Result) string {
	var out strings.Builder
	for _, a := range result.Actions {
		fmt.Fprintln(&out, a)
		if a.UID != "" {
			fmt.Fprintf(&out, "  if uid %s", a.UID)
			if a.ResourceVersion != "" {
				fmt.Fprintf(&out, ", resourceVersion %s", a.ResourceVersion)
			}
			fmt.Fprintln(&out)
		}
		if a.Body == nil {
			continue
		}
		body, err := yaml.Marshal(a.Body)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(&out, "  "+strings.ReplaceAll(strings.TrimSpace(string(body)), "\n", "\n  "))
	}
	fmt.Fprintf(&out, "unchanged %d, pending %d, held %d\n", result.Unchanged, result.Pending, result.HeldBack)
	if result.Waiting > 0 {
		fmt.Fprintf(&out, "waiting %d\n", result.Waiting)
	}
	for _, c := range result.Conditions {
		fmt.Fprintf(&out, "condition %s=%t, %s: %s\n", c.Type, c.Status == metav1.ConditionTrue, c.Reason, c.Message)
	}
	if result.RemoveFinalizer != "" {
		fmt.Fprintf(&out, "the finalizer %s goes\n", result.RemoveFinalizer)
	}
	return out.String()
}
