package kit_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// childEnv makes this test binary a child process that prints hello and waits.
const childEnv = "HOOKLOOP_TEST_KIT_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		fmt.Println("hello")
		select {}
	}
	cluster.Main(m)
}

// TestObject applies an object of each scope from its builder.
func TestObject(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	other := k.Name + "-other"
	k.Object("v1/Namespace", other).Label("kubernetes.io/purpose", k.Name).Apply()
	k.Object("v1/ConfigMap", "own").Annotation("example.com/a", "b").Set("data.text", "one").Apply()
	k.Object("v1/LimitRange", "elsewhere").In(other).Set("spec.limits", []any{}).Apply()
	if got := k.Get("v1/Namespace", other).GetLabels()["kubernetes.io/purpose"]; got != k.Name {
		t.Errorf("the Namespace has the label %q, want %q", got, k.Name)
	}
	own := k.Get("v1/ConfigMap", "own")
	text, _, _ := unstructured.NestedString(own.Object, "data", "text")
	if text != "one" || own.GetAnnotations()["example.com/a"] != "b" {
		t.Errorf("the ConfigMap is %v, want the text one and the annotation", own.Object)
	}
	if k.Find("v1/LimitRange", "elsewhere") != nil {
		t.Error("the LimitRange is in the kit's namespace, want it in the other one")
	}
	k.Delete("v1/Namespace", other)
}

// TestObjects applies two objects together, changes, lists and deletes them.
func TestObjects(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	k.Apply(`
apiVersion: v1
kind: ConfigMap
metadata:
  name: one
data:
  group: $GROUP
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: two
  namespace: $NS
`)
	k.Patch("v1/ConfigMap", "two", "data: {name: $NAME}")
	if got, _, _ := unstructured.NestedString(k.Get("v1/ConfigMap", "one").Object, "data", "group"); got != k.Group {
		t.Errorf("one has the group %q, want %q", got, k.Group)
	}
	if got, _, _ := unstructured.NestedString(k.Get("v1/ConfigMap", "two").Object, "data", "name"); got != k.Name {
		t.Errorf("two has the name %q, want %q", got, k.Name)
	}
	var names []string
	for _, o := range k.List("v1/ConfigMap") {
		names = append(names, o.GetName())
	}
	if got := strings.Join(names, " "); !strings.Contains(got, "one two") {
		t.Errorf("the ConfigMaps are %s, want one and two among them", got)
	}
	k.Delete("v1/ConfigMap", "one")
	k.Delete("v1/ConfigMap", "one")
	if o := k.Find("v1/ConfigMap", "one"); o != nil {
		t.Errorf("one is still there: %v", o.Object)
	}
	if _, err := k.Lookup("Nothing", "one"); err == nil {
		t.Error("a kind that is not served: no error")
	}
}

// TestCRDIsServed uses each of several resources as soon as its CRD is applied.
func TestCRDIsServed(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	for i, scope := range []string{"Namespaced", "Cluster", "Namespaced", "Cluster"} {
		kind := fmt.Sprintf("Thing%d", i)
		k.CRD(kind, scope)
		k.Object(kind, "it").Set("spec.any.field", 1).Apply()
		k.Patch(kind, "it", "status: {seen: true}", "status")
		o := k.Get(kind, "it")
		if seen, _, _ := unstructured.NestedBool(o.Object, "status", "seen"); !seen ||
			(o.GetNamespace() == "") != (scope == "Cluster") {
			t.Errorf("%s, %s: %v", kind, scope, o.Object)
		}
	}
}

// TestWrites distinguishes the engine's writes from the test's own, and from another test's.
func TestWrites(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	other := kit.New(t)
	mark := k.Mark()
	k.NoWrites(func() {
		k.Object("v1/ConfigMap", "by-the-test").Apply()
		createAsEngine(t, other, "elsewhere")
	})
	createAsEngine(t, k, "by-the-engine")
	writes := k.Writes(mark)
	if len(writes) != 1 || writes[0].Name != "by-the-engine" || kit.Count(writes, "create", "configmaps") != 1 {
		t.Errorf("the engine's writes are %v, want the one of by-the-engine", writes)
	}
	k.NoWrites(func() { k.Settled(time.Millisecond) })
}

func createAsEngine(t *testing.T, k *kit.Kit, name string) {
	t.Helper()
	config := k.Cluster.Admin()
	config.UserAgent = "hookloop/test"
	_, err := dynamic.NewForConfigOrDie(config).Resource(
		schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
	).Namespace(k.Namespace).
		Create(
			t.Context(),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
			}},
			metav1.CreateOptions{},
		)
	if err != nil {
		t.Fatal(err)
	}
}

// TestProcess runs a child until the test ends, and reads its output.
func TestProcess(t *testing.T) {
	t.Parallel()
	var child *proc.Process
	t.Run("the test that starts it", func(t *testing.T) {
		k := kit.New(t)
		child = k.Process(proc.Spec{Name: "child", Path: os.Args[0], Env: []string{childEnv + "=1"}})
		k.Eventually("the child prints hello", func() error {
			if out := child.Output(); out != "hello\n" {
				return fmt.Errorf("it printed %q", out)
			}
			return nil
		})
	})
	select {
	case <-child.Done():
	default:
		t.Error("the child outlives the test")
	}
}

// TestHook sends requests to a hook, which answers with the parent's spec and does not listen while
// it is stopped.
func TestHook(t *testing.T) {
	t.Parallel()
	k := kit.New(t)
	h := k.Hook(kit.Mirror)
	const question = `{"parent": {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "it"},
		"spec": {"answer": {"a": 1}}}}`
	ask := func() (string, error) {
		response, err := http.Post(h.URL, "application/json", strings.NewReader(question))
		if err != nil {
			return "", err
		}
		defer response.Body.Close() //nolint:errcheck // it is read to its end
		body, err := io.ReadAll(response.Body)
		return string(body), err
	}
	if got, err := ask(); err != nil || got != "{\"a\":1}\n" {
		t.Errorf("the answer is %q, %v", got, err)
	}
	h.Stop()
	if got, err := ask(); err == nil {
		t.Errorf("a stopped hook answers %q", got)
	}
	h.Start()
	if _, err := ask(); err != nil || h.Asked("it") != 2 {
		t.Errorf("after the start: %v, asked %d times, want 2", err, h.Asked("it"))
	}
}
