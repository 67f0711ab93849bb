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

// declaration is a declaring object, typed: what the kinds of controller have in common.
type declaration interface {
	Default()
	Validate() field.ErrorList
}

// declared is what a declaration asks for, before its resources are looked up.
type declared struct {
	contract        hook.ControllerKind
	parents         []rule
	children        []rule
	hooks           map[hook.Op]*v1alpha1.Hook
	endpointConfigs []v1alpha1.EndpointConfig
	resync          time.Duration
	// deletionLimit is that of the spec; nil if it has none.
	deletionLimit *plan.DeletionLimit
	// finalizer is the name that the controller's parents may carry.
	finalizer string
	// ownsStatus reports that the parents' status is the hook's alone.
	ownsStatus bool
	// shape makes the shape once the resources are known; custom reports whether one of them is a
	// custom resource.
	shape func(o *object.Object, parents, children []object.Resource, custom func(object.Resource) bool) (watchedShape, error)
}

// rule is a resource and the field of the spec that names it; of parents, also which of its objects
// are selected.
type rule struct {
	field string
	v1alpha1.ResourceRule
	selection selection
}

// declare reads a declaring object. The error is a *Fault.
func declare(o *object.Object) (*declared, error) {
	switch o.GVK().Kind {
	case v1alpha1.CompositeControllerKind:
		c := &v1alpha1.CompositeController{}
		if err := read(o, c); err != nil {
			return nil, err
		}
		return compositeDeclared(c), nil
	case v1alpha1.DecoratorControllerKind:
		d := &v1alpha1.DecoratorController{}
		if err := read(o, d); err != nil {
			return nil, err
		}
		return decoratorDeclared(d), nil
	default:
		return nil, fmt.Errorf("%s declares no controller", o.Ref())
	}
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
		contract: hook.Composite,
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
		ownsStatus:      true,
		shape: func(o *object.Object, parents, children []object.Resource, custom func(object.Resource) bool) (watchedShape, error) {
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
		contract:        hook.Decorator,
		endpointConfigs: c.Spec.EndpointConfigs,
		resync:          c.Spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(c.Spec.DeletionLimit),
		finalizer:       decorator.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, parents, children []object.Resource, _ func(object.Resource) bool) (watchedShape, error) {
			return decorator.New(o, c, parents, children)
		},
	}
	for i, target := range c.Spec.Resources {
		d.parents = append(d.parents, rule{
			field: fmt.Sprintf(
				"spec.resources[%d]",
				i,
			),
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
