package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/composite"
	"github.com/hookloop/hookloop/internal/engine/decorator"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// watchedShape is a Shape that declares the resources that its controller watches.
type watchedShape interface {
	shape.Shape
	Watch(*controller.Controller[hook.Key])
}

// declaration is a typed declaring object of any kind.
type declaration interface {
	Default()
	Validate() field.ErrorList
}

// declared is the content of a declaration, before its resources are looked up.
type declared struct {
	kind            hook.Descriptor
	parents         []rule
	children        []rule
	hooks           map[hook.Op]*v1alpha1.Hook
	endpointConfigs []v1alpha1.EndpointConfig
	resync          time.Duration
	// deletionLimit is the spec's; nil if it has none.
	deletionLimit *plan.DeletionLimit
	// finalizer is the name that the controller's parents may carry.
	finalizer string
	// shape makes the shape once the resources are known; custom reports whether one of them is a
	// custom resource.
	shape func(o *object.Object, parents, children []object.Resource,
		custom func(object.Resource) bool) (watchedShape, error)
}

// rule is a resource and the field of the spec that names it; of parents, also which of its objects
// are selected.
type rule struct {
	field string
	v1alpha1.ResourceRule
	selection selection
}

// declarations read the declaring objects of each kind of controller.
var declarations = map[hook.ControllerKind]func(*object.Object) (*declared, error){
	hook.Composite: reading(compositeDeclared),
	hook.Decorator: reading(decoratorDeclared),
}

// reading returns a function that decodes a declaring object of type T and converts it.
func reading[T any, P interface {
	*T
	declaration
}](convert func(P) *declared) func(*object.Object) (*declared, error) {
	return func(o *object.Object) (*declared, error) {
		into := P(new(T))
		if err := read(o, into); err != nil {
			return nil, err
		}
		return convert(into), nil
	}
}

// declare reads a declaring object. The error is a *Fault.
func declare(o *object.Object) (*declared, error) {
	kind, found := hook.DescriptorOf(o.GVK().Kind)
	if !found {
		return nil, fmt.Errorf("%s declares no controller", o.Ref())
	}
	d, err := declarations[kind.ControllerKind](o)
	if err != nil {
		return nil, err
	}
	d.kind = kind
	return d, nil
}

// read decodes, defaults and validates a declaring object.
func read(o *object.Object, into declaration) error {
	if err := json.Unmarshal(o.Raw(), into); err != nil {
		return &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: "spec: " + err.Error()}
	}
	into.Default()
	if errs := into.Validate(); len(errs) > 0 {
		return &Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: errs.ToAggregate().Error()}
	}
	return nil
}

func compositeDeclared(c *v1alpha1.CompositeController) *declared {
	d := &declared{
		parents: []rule{
			{
				field:        "spec.parentResource",
				ResourceRule: c.Spec.ParentResource.ResourceRule,
				selection:    selects(c.Spec.ParentResource.LabelSelector, nil),
			},
		},
		endpointConfigs: c.Spec.EndpointConfigs,
		resync:          c.Spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(c.Spec.DeletionLimit),
		finalizer:       composite.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, parents, children []object.Resource,
			custom func(object.Resource) bool) (watchedShape, error) {
			return composite.New(o, c, composite.Resources{Parent: parents[0], Children: children, Custom: custom})
		},
	}
	for i, child := range c.Spec.ChildResources {
		d.children = append(d.children,
			rule{field: fmt.Sprintf("spec.childResources[%d]", i), ResourceRule: child.ResourceRule})
	}
	if h := c.Spec.Hooks; h != nil {
		d.hooks = map[hook.Op]*v1alpha1.Hook{hook.Sync: h.Sync, hook.Finalize: h.Finalize, hook.Customize: h.Customize}
	}
	return d
}

func decoratorDeclared(c *v1alpha1.DecoratorController) *declared {
	d := &declared{
		endpointConfigs: c.Spec.EndpointConfigs,
		resync:          c.Spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(c.Spec.DeletionLimit),
		finalizer:       decorator.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, parents, children []object.Resource,
			_ func(object.Resource) bool) (watchedShape, error) {
			return decorator.New(o, c, parents, children)
		},
	}
	for i, target := range c.Spec.Resources {
		d.parents = append(d.parents, rule{
			field:        fmt.Sprintf("spec.resources[%d]", i),
			ResourceRule: target.ResourceRule,
			selection:    selects(target.LabelSelector, target.AnnotationSelector),
		})
	}
	for i, attachment := range c.Spec.Attachments {
		d.children = append(d.children,
			rule{field: fmt.Sprintf("spec.attachments[%d]", i), ResourceRule: attachment.ResourceRule})
	}
	if h := c.Spec.Hooks; h != nil {
		d.hooks = map[hook.Op]*v1alpha1.Hook{hook.Sync: h.Sync, hook.Finalize: h.Finalize, hook.Customize: h.Customize}
	}
	return d
}
