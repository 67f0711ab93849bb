package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// declared is the content of a declaration, before its resources are looked up.
type declared struct {
	kind     hook.Descriptor
	parents  []rule
	children []rule
	// rolling is the field with the first rolling update method; empty if there is none.
	rolling string
	// inputs are the resources of a map controller's inputs.
	inputs          []rule
	hooks           map[hook.Op]*v1alpha1.Hook
	endpointConfigs []v1alpha1.EndpointConfig
	resync          time.Duration
	// deletionLimit is the spec's; nil if it has none.
	deletionLimit *plan.DeletionLimit
	// finalizer is the name that the controller's parents may carry.
	finalizer string
	// shape makes the shape once the resources are known.
	shape func(*object.Object, *resources) (observe.Shape, error)
}

// rule is a resource and the field of the spec that names it; of parents, also which of its objects
// are selected, of children their update method.
type rule struct {
	field string
	v1alpha1.ResourceRule
	selection selection
	// method is the update method of children.
	method v1alpha1.UpdateMethod
}

// declare reads a declaring object. The error is a *Fault.
func declare(o *object.Object) (*declared, error) {
	kind, found := hook.DescriptorOf(o.GVK().Kind)
	if !found {
		return nil, fmt.Errorf("%s declares no controller", o.Ref())
	}
	c, err := decode(o)
	if err != nil {
		return nil, err
	}
	common := c.Common()
	d := &declared{
		kind:            kind,
		hooks:           map[hook.Op]*v1alpha1.Hook{},
		endpointConfigs: common.EndpointConfigs,
		resync:          common.Resync,
		deletionLimit:   (*plan.DeletionLimit)(common.DeletionLimit),
		finalizer:       observe.Finalizer(kind.ControllerKind, c.GetName()),
		shape: func(o *object.Object, r *resources) (observe.Shape, error) {
			return observe.New(kind.ControllerKind, o, c, observe.Resources{
				Parents: r.parents, Children: r.children, Inputs: r.inputs, Namespaces: r.namespaces, Custom: r.custom,
			})
		},
	}
	for _, use := range c.Uses() {
		d.add(use)
	}
	hooks := c.DeclaredHooks()
	for _, op := range kind.Operations {
		d.hooks[op] = hooks[string(op)]
	}
	return d, nil
}

// decode decodes, defaults and validates a declaring object.
func decode(o *object.Object) (v1alpha1.Controller, error) {
	c, found := v1alpha1.NewController(o.GVK().Kind)
	if !found {
		return nil, fmt.Errorf("%s has no Go type", o.GVK())
	}
	if err := json.Unmarshal(o.Raw(), c); err != nil {
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: "spec: " + err.Error()}
	}
	c.Default()
	if errs := c.Validate(); len(errs) > 0 {
		return nil, &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: errs.ToAggregate().Error()}
	}
	return c, nil
}

// add adds a resource that the spec names.
func (d *declared) add(use v1alpha1.Use) {
	r := rule{
		field: use.Path, ResourceRule: use.Rule, selection: selects(use.Labels, use.Annotations), method: use.Method,
	}
	switch use.Role {
	case v1alpha1.RoleParent:
		d.parents = append(d.parents, r)
	case v1alpha1.RoleChild:
		d.children = append(d.children, r)
		if d.kind.Rolls && use.Method.Rolling() && d.rolling == "" {
			d.rolling = use.Path + ".updateStrategy.method"
		}
	case v1alpha1.RoleInput:
		d.inputs = append(d.inputs, r)
	}
}
