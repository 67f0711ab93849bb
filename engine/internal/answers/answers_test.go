// Package answers tests that the engine accepts and rejects the same answers as the test helpers of
// the SDKs do. They share the table sdk/testdata/answers.json.
//
// The package has no code of its own: an answer passes a transport, the customize stage, a shape and
// the plan, so its test belongs to none of them.
package answers

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/ask/customize"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/observe/decorator"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/transports/webhook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// answers is the table that the test helpers of all SDKs must pass.
type answers struct {
	Declared []string
	Parents  map[string]json.RawMessage
	Cases    []struct {
		Name, Parent, Hook string
		Answer             map[string]json.RawMessage
		Repeat             map[string]int
		Error              []string
	}
	Map mapAnswers
}

func readAnswers(t *testing.T) answers {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "sdk", "testdata", "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var table answers
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	return table
}

// TestAnswersTable validates each answer of the table in the engine: from a webhook's response
// through its requirements and the composite's shape to a plan.
func TestAnswersTable(t *testing.T) {
	table := readAnswers(t)
	own := slices.Clone(plan.EngineConditions)
	for _, c := range table.Cases {
		own = slices.DeleteFunc(own, func(name string) bool { return c.Name == "the engine's condition "+name })
		t.Run(c.Name, func(t *testing.T) {
			for field, n := range c.Repeat {
				var items []json.RawMessage
				if err := json.Unmarshal(c.Answer[field], &items); err != nil {
					t.Fatal(err)
				}
				c.Answer[field] = encode(t, slices.Repeat(items[:1], n))
			}
			parent := "namespaced"
			if c.Parent != "" {
				parent = c.Parent
			}
			o, err := object.Decode(table.Parents[parent])
			if err != nil {
				t.Fatal(err)
			}
			shape := compositeOf(t, table.Declared, o)
			if c.Hook == "decorator" {
				shape = decoratorOf(t, table.Declared, o)
			}
			err = judge(t, shape, o, encode(t, c.Answer))
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
	if len(own) > 0 {
		t.Errorf("the table has no case for the engine's conditions %v", own)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// judge returns the engine's error for an answer, or nil if the engine makes a plan.
func judge(t *testing.T, judged shape.Shape, o *object.Object, answer []byte) error {
	t.Helper()
	input := shape.Input{Reader: &viewtest.Reader{Objects: []*object.Object{o}}, Key: hook.ParentKey(o.Ref())}
	observed, err := judged.Observe(input)
	if err != nil {
		t.Fatal(err)
	}
	return judgeAnswer(t, judged, observed, judged.Questions(observed)[0], answer)
}

// judgeAnswer returns the engine's error for an answer to a question, or nil if the engine makes a
// plan. After a fatal result the engine reads nothing else of the answer.
func judgeAnswer(
	t *testing.T, judged shape.Shape, observed *plan.Observed, q *hook.Question, answer []byte,
) error {
	t.Helper()
	given, err := customizer(t).Wrap(webhookOf(t, answer)).Ask(t.Context(), q)
	if err != nil || given.Fatal() != nil {
		return err
	}
	desired, err := judged.Desired(plan.Input{Observed: observed}, []*hook.Answer{given})
	if err != nil {
		return err
	}
	_, err = plan.Make(plan.Input{Observed: observed}, desired)
	return err
}

// compositeOf makes a composite of the parent's kind that generates its selector. Any object may
// take the place of the controller.
func compositeOf(t *testing.T, declared []string, parent *object.Object) shape.Shape {
	t.Helper()
	yes := true
	c := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: "table"}}
	c.Spec.GenerateSelector = &yes
	c.Spec.Hooks = &v1alpha1.CompositeHooks{Sync: &v1alpha1.Hook{}}
	c.Spec.ChildResources = make([]v1alpha1.ChildResourceRule, len(declared))
	custom := func(r object.Resource) bool { return r.GVK == parent.GVK() }
	shape, err := composite.New(parent, c,
		composite.Resources{Parent: resourceOf(parent), Children: resources(declared), Custom: custom})
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

// decoratorOf makes a decorator of the parent's kind.
func decoratorOf(t *testing.T, declared []string, parent *object.Object) shape.Shape {
	t.Helper()
	c := &v1alpha1.DecoratorController{ObjectMeta: metav1.ObjectMeta{Name: "table"}}
	c.Spec.Hooks = &v1alpha1.DecoratorHooks{Sync: &v1alpha1.Hook{}}
	c.Spec.Resources = make([]v1alpha1.DecoratedResourceRule, 1)
	c.Spec.Attachments = make([]v1alpha1.AttachmentRule, len(declared))
	shape, err := decorator.New(parent, c, []object.Resource{resourceOf(parent)}, resources(declared))
	if err != nil {
		t.Fatal(err)
	}
	return shape
}

func resourceOf(parent *object.Object) object.Resource {
	return object.Resource{GVK: parent.GVK(), Plural: "websites", Namespaced: parent.Namespace() != "", HasStatus: true}
}

// resources returns the resources of declared kinds: Pod.v1, Namespace.v1:Cluster.
func resources(declared []string) (all []object.Resource) {
	for _, key := range declared {
		name, clusterScoped := strings.CutSuffix(key, ":Cluster")
		kind, apiVersion, _ := strings.Cut(name, ".")
		gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
		all = append(all, object.Resource{GVK: gvk, Plural: strings.ToLower(kind) + "s", Namespaced: !clusterScoped})
	}
	return all
}

// webhookOf returns a hook of version v2 that always returns the same answer.
func webhookOf(t *testing.T, answer []byte) *hook.Opened {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := w.Write(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	opened, err := webhook.Open(
		hook.Config{Op: hook.Sync, Version: "v2", Field: encode(t, map[string]string{"url": server.URL, "timeout": "60s"})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return opened
}

// customizer reads related objects from an API server without objects.
func customizer(t *testing.T) *customize.Customizer {
	t.Helper()
	objects, err := cache.New(cache.Config{Config: cachetest.New(t).Config()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	c := customize.New(customize.Config{
		Kind: hook.Composite, Cache: objects, Discovery: served{}, Clock: clock.RealClock{},
		Enqueue: func(hook.Key, *object.Object) {},
	})
	t.Cleanup(c.Close)
	return c
}

// served holds the resources that requirements of the table select.
type served struct{}

func (served) Resource(apiVersion, plural string) (object.Resource, error) {
	kinds := map[string]string{"configmaps": "ConfigMap", "secrets": "Secret", "namespaces": "Namespace"}
	if apiVersion != "v1" || kinds[plural] == "" {
		return object.Resource{}, &discovery.NotFoundError{APIVersion: apiVersion, Name: plural}
	}
	return object.Resource{
		GVK:        schema.GroupVersionKind{Version: "v1", Kind: kinds[plural]},
		Plural:     plural,
		Namespaced: plural != "namespaces",
	}, nil
}

func (served) Changed() <-chan struct{} { return nil }
