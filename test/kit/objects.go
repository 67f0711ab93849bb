package kit

import (
	"context"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// Lookup reads an object and returns the error of the API server. kind is "apps/v1/Deployment",
// "v1/Pod", or "Kind" for a kind in the kit's own group.
func (k *Kit) Lookup(kind, name string) (*unstructured.Unstructured, error) {
	r, err := k.resource(k.gvk(kind), "")
	if err != nil {
		return nil, err
	}
	return r.Get(k.Context(), name, metav1.GetOptions{})
}

// Find returns an object, or nil if it does not exist.
func (k *Kit) Find(kind, name string) *unstructured.Unstructured {
	k.Helper()
	o, err := k.Lookup(kind, name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		k.Fatalf("get %s %s: %v", kind, name, err)
	}
	return o
}

// Get returns an object. It ends the test when the object does not exist.
func (k *Kit) Get(kind, name string) *unstructured.Unstructured {
	k.Helper()
	o := k.Find(kind, name)
	if o == nil {
		k.Fatalf("%s %s is not there", kind, name)
	}
	return o
}

// List lists the objects of a kind in the kit's namespace.
func (k *Kit) List(kind string) []unstructured.Unstructured {
	k.Helper()
	l, err := k.of(kind).List(k.Context(), metav1.ListOptions{})
	if err != nil {
		k.Fatalf("list %s: %v", kind, err)
	}
	return l.Items
}

// Patch merges YAML into an object, or into one of its subresources, such as "status".
func (k *Kit) Patch(kind, name, text string, subresources ...string) {
	k.Helper()
	data, err := yaml.YAMLToJSON([]byte(k.Expand(text)))
	if err != nil {
		k.Fatal(err)
	}
	if _, err := k.of(kind).Patch(
		k.Context(),
		name,
		types.MergePatchType,
		data,
		metav1.PatchOptions{},
		subresources...); err != nil {
		k.Fatalf("patch %s %s: %v", kind, name, err)
	}
}

// Delete deletes an object, if it exists. A cleanup may call it.
func (k *Kit) Delete(kind, name string) {
	k.Helper()
	ctx := context.WithoutCancel(k.Context())
	if err := k.of(kind).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		k.Fatalf("delete %s %s: %v", kind, name, err)
	}
}

// resource returns the client for a kind. An empty namespace of a namespaced kind is the kit's.
func (k *Kit) resource(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		k.mapper.Reset()
		mapping, err = k.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if err != nil {
			return nil, err
		}
	}
	client := k.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client, nil
	}
	if namespace == "" {
		namespace = k.Namespace
	}
	return client.Namespace(namespace), nil
}

// gvk parses "apps/v1/Deployment", "v1/Pod" or, for the kit's own group, "Kind".
func (k *Kit) gvk(kind string) schema.GroupVersionKind {
	parts := strings.Split(kind, "/")
	switch len(parts) {
	case 2:
		return schema.GroupVersionKind{Version: parts[0], Kind: parts[1]}
	case 3:
		return schema.GroupVersionKind{Group: parts[0], Version: parts[1], Kind: parts[2]}
	}
	return schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: kind}
}

// of returns the client for a kind that must be served.
func (k *Kit) of(kind string) dynamic.ResourceInterface {
	k.Helper()
	r, err := k.resource(k.gvk(kind), "")
	if err != nil {
		k.Fatalf("%s: %v", kind, err)
	}
	return r
}
