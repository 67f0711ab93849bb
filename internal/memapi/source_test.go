package memapi_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/internal/memapi"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// cluster is a Source with ConfigMaps. It keeps the resources that were listed.
type cluster struct {
	listed []string
	err    error
}

func (c *cluster) List(_ context.Context, r schema.GroupVersionResource) ([]*unstructured.Unstructured, error) {
	c.listed = append(c.listed, r.Resource)
	if c.err != nil || r.Resource != "configmaps" {
		return nil, c.err
	}
	return []*unstructured.Unstructured{{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{
			"name": "prices", "namespace": "hub", "uid": "u", "generation": int64(7), "finalizers": []any{"example.com/hold"},
		},
		"newer": "field", // as a newer API server may have it
	}}}, nil
}

// TestSource has the server begin with the objects of another one: as they are, read once for each
// resource, when they are first read here, and not if the object of a get is there.
func TestSource(t *testing.T) {
	source := &cluster{}
	server, err := memapi.New(memapi.Options{Source: source})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := dynamic.NewForConfig(server.Config())
	if err != nil {
		t.Fatal(err)
	}
	maps := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace("hub")
	names := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := names.Get(t.Context(), "kube-system", metav1.GetOptions{}); err != nil || len(source.listed) > 0 {
		t.Errorf("an object of the server: error %v, read %v", err, source.listed)
	}
	for range 2 {
		u, err := maps.Get(t.Context(), "prices", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if u.GetUID() != "u" || u.GetGeneration() != 7 || len(u.GetFinalizers()) != 1 || u.Object["newer"] != "field" {
			t.Errorf("the object is %v, want it as it is", u)
		}
	}
	if err := maps.Delete(t.Context(), "prices", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if u, err := maps.Get(t.Context(), "prices", metav1.GetOptions{}); err != nil || u.GetDeletionTimestamp() == nil {
		t.Errorf("the deleted object is %v, %v", u, err)
	}
	if want := []string{"configmaps"}; !slices.Equal(source.listed, want) {
		t.Errorf("read %v, want %v", source.listed, want)
	}
	source.err = apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "", errors.New("no right"))
	secrets := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "secrets"})
	if _, err := secrets.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the error is %v, want the source's", err)
	}
}
