package conformance

import (
	"encoding/json"
	"errors"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func readMap(o *object.Object) (*declared, error) {
	c := &v1alpha1.MapController{}
	if err := decodeInto(o, c); err != nil {
		return nil, err
	}
	d := &declared{parents: []v1alpha1.ResourceRule{c.Spec.ParentResource.ResourceRule}}
	for _, input := range c.Spec.InputResources {
		d.inputs = append(d.inputs, input.ResourceRule)
	}
	for _, output := range c.Spec.OutputResources {
		d.children = append(d.children, output.ResourceRule)
	}
	if h := c.Spec.Hooks; h != nil {
		d.hooks = map[hook.Op]*v1alpha1.Hook{
			hook.Map: h.Map, hook.Tombstone: h.Tombstone, hook.Finalize: h.Finalize, hook.Customize: h.Customize,
		}
	}
	return d, nil
}

// declaration is a typed declaring object.
type declaration interface {
	Default()
	Validate() field.ErrorList
}

// decodeInto decodes, defaults and validates a declaring object.
func decodeInto(o *object.Object, into declaration) error {
	if err := json.Unmarshal(o.Raw(), into); err != nil {
		return object.Explain(err)
	}
	into.Default()
	if errs := into.Validate(); len(errs) > 0 {
		return errs.ToAggregate()
	}
	return nil
}

func readComposite(o *object.Object) (*declared, error) {
	c := &v1alpha1.CompositeController{}
	if err := decodeInto(o, c); err != nil {
		return nil, err
	}
	d := &declared{
		parents:  []v1alpha1.ResourceRule{c.Spec.ParentResource.ResourceRule},
		selector: c.Spec.GenerateSelector == nil || !*c.Spec.GenerateSelector,
	}
	for _, child := range c.Spec.ChildResources {
		d.children = append(d.children, child.ResourceRule)
	}
	if h := c.Spec.Hooks; h != nil {
		d.hooks = map[hook.Op]*v1alpha1.Hook{hook.Sync: h.Sync, hook.Finalize: h.Finalize, hook.Customize: h.Customize}
	}
	return d, nil
}

func readDecorator(o *object.Object) (*declared, error) {
	c := &v1alpha1.DecoratorController{}
	if err := decodeInto(o, c); err != nil {
		return nil, err
	}
	d := &declared{}
	for _, target := range c.Spec.Resources {
		d.parents = append(d.parents, target.ResourceRule)
	}
	if len(d.parents) == 0 {
		return nil, errors.New("spec.resources: is empty, expected a resource")
	}
	for _, attachment := range c.Spec.Attachments {
		d.children = append(d.children, attachment.ResourceRule)
	}
	if h := c.Spec.Hooks; h != nil {
		d.hooks = map[hook.Op]*v1alpha1.Hook{hook.Sync: h.Sync, hook.Finalize: h.Finalize, hook.Customize: h.Customize}
	}
	return d, nil
}
