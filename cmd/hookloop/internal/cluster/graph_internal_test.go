package cluster

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/graph"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/memapi"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// TestDependenciesThatCannotBeRead are in the graph, and do not end it: a name that leads to
// another URL, and an object that the user may not read.
func TestDependenciesThatCannotBeRead(t *testing.T) {
	server, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.Fail(memapi.Fault{Verb: "get", Resource: "secrets", Times: -1, Status: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no rights",
	}})
	c := clusterOf(t, server)
	x, err := newIndex(c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	root, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":"a",` +
		`"uid":"u"},"deps":{"one":{"apiVersion":"v1","kind":"Secret","name":"s"},` +
		`"two":{"apiVersion":"v1","kind":"ConfigMap","name":"../x"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Build(t.Context(), newSource(x, nil), root, 10)
	if err != nil {
		t.Fatal(err)
	}
	g.Unknown = x.notes()
	want := `ConfigMap a  waits for Secret s, ConfigMap ../x
Secret s
ConfigMap ../x  does not exist
not read, because of "Forbidden": objects of secrets
`
	if diff := cmp.Diff(want, g.Text()); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
}

// TestManyChildrenAreListed reads 60 children by one list in place of 60 requests.
func TestManyChildrenAreListed(t *testing.T) {
	server, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := clusterOf(t, server)
	configMaps := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace("shop")
	namespaces := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))
	create := func(r dynamic.ResourceInterface, kind, name string, owners ...any) *unstructured.Unstructured {
		made, err := r.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": kind, "metadata": map[string]any{"name": name, "ownerReferences": owners},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	create(namespaces, "Namespace", "shop")
	root := create(configMaps, "ConfigMap", "root")
	owner := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "root", "uid": string(root.GetUID())}
	for i := range 60 {
		create(configMaps, "ConfigMap", fmt.Sprintf("child-%d", i), owner)
	}
	x, err := newIndex(c, "shop")
	if err != nil {
		t.Fatal(err)
	}
	if err := x.load(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Fail(memapi.Fault{Verb: "get", Resource: "configmaps", Times: -1, Status: metav1.Status{
		Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "one by one",
	}})
	o, err := object.FromMap(root.Object)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graph.Build(t.Context(), newSource(x, nil), o, 1000)
	if err != nil {
		t.Fatal(err)
	}
	if unknown := x.notes(); len(g.Nodes) != 61 || len(unknown) > 0 {
		t.Errorf("%d objects, %v; want 61 without a request for a single one", len(g.Nodes), unknown)
	}
}
