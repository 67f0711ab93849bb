package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/catalog"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const crds = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: zones.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Zone, plural: zones}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object}}
`

// TestResources finds the resources of Kubernetes and of a CRD, with their scope and status.
func TestResources(t *testing.T) {
	t.Parallel()
	set, err := manifest.Read(strings.NewReader(crds), "-")
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := set.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	known, err := catalog.New(t.Context(), definitions)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []object.Resource{
		{GVK: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Zone"}, Plural: "zones"},
		{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps", Namespaced: true},
		{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, Plural: "namespaces", HasStatus: true},
		{
			GVK: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, Plural: "deployments",
			Namespaced: true, HasStatus: true,
		},
	} {
		rule := v1alpha1.ResourceRule{APIVersion: want.GVK.GroupVersion().String(), Resource: want.Plural}
		if got, found := known.Resource(rule); !found || !cmp.Equal(got, want) {
			t.Errorf("%s: got %+v and %v, want %+v", rule, got, found, want)
		}
	}
	if r, found := known.Resource(v1alpha1.ResourceRule{APIVersion: "apps/v1", Resource: "Deployment"}); found {
		t.Errorf("got %v for a kind as a resource, want none", r)
	}
	meant, found := known.Similar(v1alpha1.ResourceRule{APIVersion: "apps/v1beta1", Resource: "Deployment"})
	if !found || meant.String() != "deployments.apps/v1" {
		t.Errorf("got %v and %v, want deployments.apps/v1", meant, found)
	}
}
