package render

import (
	"strings"
	"testing"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
)

// TestDeleteSharedParent deletes a parent of two controllers without finalizers: it is gone when it
// is deleted for the second one.
func TestDeleteSharedParent(t *testing.T) {
	set, err := manifest.Read(strings.NewReader(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: a}
spec:
  resources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: "http://hooks.shop/sync"}}}
---
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: b}
spec:
  resources: [{apiVersion: v1, resource: configmaps}]
  hooks: {sync: {webhook: {url: "http://hooks.shop/sync"}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop, namespace: web}
`), "-")
	if err != nil {
		t.Fatal(err)
	}
	in, err := newInput(set)
	if err != nil {
		t.Fatal(err)
	}
	w, err := newWorld(t.Context(), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer w.memory.Close()
	if err := (&session{world: w}).deleteParents(t.Context()); err != nil {
		t.Errorf("got %v, expected no error", err)
	}
	for ref := range w.snapshot() {
		if ref.GVK.Kind == "ConfigMap" {
			t.Errorf("%s is left", ref)
		}
	}
}
