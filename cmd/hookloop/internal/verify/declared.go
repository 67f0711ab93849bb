package conformance

import (
	"encoding/json"
	"errors"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// declared is the content of a declaring object.
type declared struct {
	parents, children []v1alpha1.ResourceRule
	// inputs are those of a map controller.
	inputs   []v1alpha1.ResourceRule
	hooks    map[hook.Op]*v1alpha1.Hook
	selector bool
}

// readDeclared reads a declaring object.
func readDeclared(kind hook.ControllerKind, o *object.Object) (*declared, error) {
	into := kinds[kind].typed()
	if err := decodeInto(o, into); err != nil {
		return nil, err
	}
	c := &manifests.Controller{Declared: into}
	d := &declared{hooks: c.Hooks()}
	lists := map[manifests.Role]*[]v1alpha1.ResourceRule{
		manifests.Parent: &d.parents, manifests.Child: &d.children, manifests.Input: &d.inputs,
	}
	for _, use := range c.Uses() {
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
