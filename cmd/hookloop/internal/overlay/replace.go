package overlay

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// manager is the field manager that writes the controllers.
const manager = "hookloop-files"

// Replace creates, changes and deletes controllers until the overlay has exactly the given ones. If
// one of them is invalid, its old version stays; the error contains the API server's answer about
// each invalid one.
func (o *Overlay) Replace(ctx context.Context, controllers []*unstructured.Unstructured) error {
	var faults []error
	for _, kind := range hook.Descriptors() {
		objects := o.client.Resource(v1alpha1.GroupVersion.WithResource(kind.Plural))
		keep := map[string]bool{}
		for _, c := range controllers {
			if c.GetKind() != kind.Declared || c.GroupVersionKind().Group != v1alpha1.GroupVersion.Group {
				continue
			}
			keep[c.GetName()] = true
			c = c.DeepCopy()
			unstructured.RemoveNestedField(c.Object, "status")
			c.SetManagedFields(nil)
			c.SetResourceVersion("")
			c.SetUID("")
			options := metav1.ApplyOptions{FieldManager: manager, Force: true}
			if _, err := objects.Apply(ctx, c.GetName(), c, options); err != nil {
				faults = append(faults, fmt.Errorf("%s %s: %w", c.GetKind(), c.GetName(), err))
			}
		}
		present, err := objects.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, p := range present.Items {
			if !keep[p.GetName()] {
				faults = append(faults, objects.Delete(ctx, p.GetName(), metav1.DeleteOptions{}))
			}
		}
	}
	return errors.Join(faults...)
}

// Has returns true if the object declares a controller that the overlay would serve.
func Has(o *unstructured.Unstructured) bool {
	gvk := o.GroupVersionKind()
	return gvk.Group == v1alpha1.GroupVersion.Group && slices.ContainsFunc(hook.Descriptors(),
		func(k hook.Descriptor) bool { return k.Declared == gvk.Kind })
}
