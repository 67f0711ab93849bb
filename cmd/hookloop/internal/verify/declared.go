package verify

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// declared holds what a controller declares.
type declared struct {
	parents, children []v1alpha1.ResourceRule
	// inputs lists the resources of a map controller's inputs.
	inputs   []v1alpha1.ResourceRule
	hooks    map[hook.Op]*v1alpha1.Hook
	selector bool
}

// readDeclared reads a declaring object.
func readDeclared(o *object.Object) (*declared, error) {
	into, err := decodeController(o)
	if err != nil {
		return nil, err
	}
	kind, _ := hook.DescriptorOf(o.GVK().Kind)
	d := &declared{hooks: manifest.Hooks(kind, into)}
	lists := map[v1alpha1.Role]*[]v1alpha1.ResourceRule{
		v1alpha1.RoleParent: &d.parents, v1alpha1.RoleChild: &d.children, v1alpha1.RoleInput: &d.inputs,
	}
	for _, use := range into.Uses() {
		*lists[use.Role] = append(*lists[use.Role], use.Rule)
	}
	if len(d.parents) == 0 {
		return nil, errors.New("spec.resources: is empty, expected a resource")
	}
	if composite, ok := into.(*v1alpha1.CompositeController); ok {
		d.selector = composite.Spec.GenerateSelector == nil || !*composite.Spec.GenerateSelector
	}
	return d, nil
}

// decodeController decodes, defaults and validates a declaring object.
func decodeController(o *object.Object) (v1alpha1.Controller, error) {
	c, found := v1alpha1.NewController(o.GVK().Kind)
	if !found {
		return nil, fmt.Errorf("got a %s, expected a %s", o.GVK().Kind, manifest.OneOfKinds())
	}
	if err := json.Unmarshal(o.Raw(), c); err != nil {
		return nil, object.Explain(err)
	}
	c.Default()
	if errs := c.Validate(); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return c, nil
}
