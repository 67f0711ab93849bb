package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/discovery"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// config is what one controller is made of: its spec, and the resources that the spec names.
type config struct {
	object    *object.Object
	spec      string
	composite *v1alpha1.CompositeController
	parent    object.Resource
	children  []object.Resource
}

// same says whether a controller made of c need not be restarted for other.
func (c *config) same(other *config) bool {
	return c.object.UID() == other.object.UID() && c.spec == other.spec &&
		c.parent == other.parent && slices.Equal(c.children, other.children)
}

// resolve reads, defaults and validates the spec of a declaring object and finds its resources. Its error is a *Fault.
func (s *Supervisor) resolve(o *object.Object) (*config, error) {
	if o.GVK().Kind != "CompositeController" {
		return nil, &Fault{Reason: v1alpha1.ReasonUnsupported, Problem: o.GVK().Kind + " is not supported by this version"}
	}
	spec, _ := o.Field("spec")
	c := &config{object: o, spec: string(spec), composite: &v1alpha1.CompositeController{}}
	if err := json.Unmarshal(o.Raw(), c.composite); err != nil {
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: "spec: " + err.Error()}
	}
	c.composite.Default()
	if errs := c.composite.Validate(); len(errs) > 0 {
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: errs.ToAggregate().Error()}
	}
	if err := unsupported(c.composite); err != nil {
		return nil, err
	}
	return c, s.findResources(c)
}

// unsupported names what the spec asks for and this version does not do.
func unsupported(c *v1alpha1.CompositeController) error {
	if c.Spec.Hooks != nil && c.Spec.Hooks.Customize != nil {
		return &Fault{Reason: v1alpha1.ReasonUnsupported, Problem: "spec.hooks.customize: not supported by this version"}
	}
	for i, child := range c.Spec.ChildResources {
		if child.UpdateStrategy != nil && child.UpdateStrategy.Method.Rolling() {
			return &Fault{Reason: v1alpha1.ReasonUnsupported, Problem: fmt.Sprintf(
				"spec.childResources[%d].updateStrategy.method: %s is not supported by this version; expected OnDelete, Recreate or InPlace",
				i, child.UpdateStrategy.Method)}
		}
	}
	if len(c.Spec.EndpointConfigs) > 0 {
		return &Fault{Reason: v1alpha1.ReasonUnsupported, Problem: "spec.endpointConfigs: not supported by this version"}
	}
	return nil
}

// findResources asks discovery for the parent's and the children's resources.
func (s *Supervisor) findResources(c *config) error {
	var err error
	if c.parent, err = s.find("spec.parentResource", v1alpha1.ReasonParentNotFound, c.composite.Spec.ParentResource.ResourceRule); err != nil {
		return err
	}
	for i, rule := range c.composite.Spec.ChildResources {
		field := fmt.Sprintf("spec.childResources[%d]", i)
		child, err := s.find(field, v1alpha1.ReasonChildNotFound, rule.ResourceRule)
		if err != nil {
			return err
		}
		if c.parent.Namespaced && !child.Namespaced {
			return &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
				"%s: %s is cluster-scoped and the parent %s is namespaced; expected a namespaced resource", field, child, c.parent)}
		}
		c.children = append(c.children, child)
	}
	return nil
}

func (s *Supervisor) find(field, reason string, rule v1alpha1.ResourceRule) (object.Resource, error) {
	r, err := s.Discovery.Resource(rule.APIVersion, rule.Resource)
	var missing *discovery.NotFoundError
	switch {
	case errors.As(err, &missing):
		return r, &Fault{Reason: reason, Problem: fmt.Sprintf("%s: the API server does not serve %s; it starts when it does", field, rule)}
	case err != nil:
		return r, &Fault{Reason: reason, Problem: fmt.Sprintf("%s: %v", field, err), Retry: true}
	}
	return r, nil
}

// openHooks opens the declared hooks. Its error is a *Fault that names the field; hooks that were opened before it are closed.
func (s *Supervisor) openHooks(c *config) (map[hook.Op]*hook.Opened, []*hook.Opened, error) {
	hooks := map[hook.Op]*hook.Opened{}
	var opened []*hook.Opened
	for op, declared := range declaredHooks(c.composite) {
		o, err := s.open(c, op, declared)
		if err != nil {
			return nil, nil, errors.Join(err, closeHooks(opened))
		}
		hooks[op], opened = o, append(opened, o)
	}
	return hooks, opened, nil
}

func declaredHooks(c *v1alpha1.CompositeController) map[hook.Op]*v1alpha1.Hook {
	hooks := map[hook.Op]*v1alpha1.Hook{}
	if c.Spec.Hooks == nil {
		return hooks
	}
	for op, h := range map[hook.Op]*v1alpha1.Hook{hook.Sync: c.Spec.Hooks.Sync, hook.Finalize: c.Spec.Hooks.Finalize} {
		if h != nil {
			hooks[op] = h
		}
	}
	return hooks
}

// open finds the one transport whose field the hook sets.
func (s *Supervisor) open(c *config, op hook.Op, declared *v1alpha1.Hook) (*hook.Opened, error) {
	data, err := json.Marshal(declared)
	if err != nil {
		return nil, err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, err
	}
	for name, field := range fields {
		opener, ok := s.Openers[name]
		if !ok {
			continue
		}
		opened, err := opener(hook.Settings{
			ControllerKind: c.object.GVK().Kind, ControllerName: c.object.Name(), Op: op,
			Version: string(declared.Version), Field: field,
		})
		if err != nil {
			return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf("spec.hooks.%s.%s: %v", op, name, err)}
		}
		return opened, nil
	}
	return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: fmt.Sprintf(
		"spec.hooks.%s: no transport is set; expected one of webhook and grpc", op)}
}

func closeHooks(hooks []*hook.Opened) error {
	var errs []error
	for _, h := range hooks {
		if h.Close != nil {
			errs = append(errs, h.Close())
		}
	}
	return errors.Join(errs...)
}
