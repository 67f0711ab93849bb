package supervisor

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/observe/decorator"
	"github.com/hookloop/hookloop/engine/internal/observe/mapping"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// watchedShape is a Shape that declares the resources that its controller watches.
type watchedShape interface {
	shape.Shape
	Watch(*loop.Loop[hook.Key])
}

// declaration is a typed declaring object of any kind.
type declaration interface {
	Default()
	Validate() field.ErrorList
}

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
	shape func(*object.Object, *resources) (watchedShape, error)
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

// declarations read the declaring objects of each kind of controller.
var declarations = map[hook.ControllerKind]func(*object.Object) (*declared, error){
	hook.Composite: reading(compositeDeclared),
	hook.Decorator: reading(decoratorDeclared),
	hook.Mapping:   reading(mapDeclared),
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
	spec := &c.Spec
	return &declared{
		parents: []rule{parentRule(spec.ParentResource.ResourceRule, spec.ParentResource.LabelSelector)},
		children: rules("spec.childResources", spec.ChildResources, func(r v1alpha1.ChildResourceRule) rule {
			return rule{ResourceRule: r.ResourceRule, method: r.UpdateStrategy.Method}
		}),
		hooks:           syncHooks(spec.Hooks.Sync, spec.Hooks.Finalize, spec.Hooks.Customize),
		endpointConfigs: spec.EndpointConfigs,
		resync:          spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(spec.DeletionLimit),
		rolling:         rollingField(spec.ChildResources),
		finalizer:       composite.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, r *resources) (watchedShape, error) {
			return composite.New(o, c, composite.Resources{Parent: r.parents[0], Children: r.children, Custom: r.custom})
		},
	}
}

func decoratorDeclared(c *v1alpha1.DecoratorController) *declared {
	spec := &c.Spec
	return &declared{
		parents: rules("spec.resources", spec.Resources, func(r v1alpha1.DecoratedResourceRule) rule {
			return rule{ResourceRule: r.ResourceRule, selection: selects(r.LabelSelector, r.AnnotationSelector)}
		}),
		children: rules("spec.attachments", spec.Attachments, func(r v1alpha1.AttachmentRule) rule {
			return rule{ResourceRule: r.ResourceRule, method: r.UpdateStrategy.Method}
		}),
		hooks:           syncHooks(spec.Hooks.Sync, spec.Hooks.Finalize, spec.Hooks.Customize),
		endpointConfigs: spec.EndpointConfigs,
		resync:          spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(spec.DeletionLimit),
		finalizer:       decorator.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, r *resources) (watchedShape, error) {
			return decorator.New(o, c, r.parents, r.children)
		},
	}
}

func mapDeclared(c *v1alpha1.MapController) *declared {
	spec := &c.Spec
	hooks := c.Spec.Hooks
	return &declared{
		parents: []rule{parentRule(spec.ParentResource.ResourceRule, spec.ParentResource.LabelSelector)},
		children: rules("spec.outputResources", spec.OutputResources, func(r v1alpha1.OutputResourceRule) rule {
			return rule{ResourceRule: r.ResourceRule, method: r.UpdateStrategy.Method}
		}),
		inputs: rules("spec.inputResources", spec.InputResources, func(r v1alpha1.InputResourceRule) rule {
			return rule{ResourceRule: r.ResourceRule}
		}),
		hooks: map[hook.Op]*v1alpha1.Hook{
			hook.Map: hooks.Map, hook.Tombstone: hooks.Tombstone,
			hook.Finalize: hooks.Finalize, hook.Customize: hooks.Customize,
		},
		endpointConfigs: spec.EndpointConfigs,
		resync:          spec.ResyncPeriod(),
		deletionLimit:   (*plan.DeletionLimit)(spec.DeletionLimit),
		finalizer:       mapping.FinalizerPrefix + c.Name,
		shape: func(o *object.Object, r *resources) (watchedShape, error) {
			return mapping.New(o, c, mapping.Resources{
				Parent: r.parents[0], Inputs: r.inputs, Outputs: r.children, Namespaces: r.namespaces,
				Custom: r.custom,
			})
		},
	}
}

// rollingField returns the field of the first child with a rolling update method, or "".
func rollingField(children []v1alpha1.ChildResourceRule) string {
	for i, c := range children {
		if c.UpdateStrategy != nil && c.UpdateStrategy.Method.Rolling() {
			return fmt.Sprintf("spec.childResources[%d].updateStrategy.method", i)
		}
	}
	return ""
}

// parentRule returns the rule of a spec with one parent resource.
func parentRule(r v1alpha1.ResourceRule, selector *metav1.LabelSelector) rule {
	return rule{field: "spec.parentResource", ResourceRule: r, selection: selects(selector, nil)}
}

// rules converts the items of a field of a spec.
func rules[T any](field string, items []T, convert func(T) rule) []rule {
	all := make([]rule, 0, len(items))
	for i, item := range items {
		r := convert(item)
		r.field = fmt.Sprintf("%s[%d]", field, i)
		all = append(all, r)
	}
	return all
}

func syncHooks(sync, finalize, customize *v1alpha1.Hook) map[hook.Op]*v1alpha1.Hook {
	return map[hook.Op]*v1alpha1.Hook{hook.Sync: sync, hook.Finalize: finalize, hook.Customize: customize}
}
