// Package composite is the shape of composite controllers. It finds a parent's children by
// controller reference, adopts the orphans that the parent's selector matches, and releases
// children that the selector no longer matches. The hook's status replaces the parent's.
//
// The package starts nothing: package pipeline runs a Shape, and package supervisor starts the
// pipeline. The Shape reads the cache and the declared CompositeController. It is safe for
// concurrent use. Its rules have table tests and are tested against a real API server
// (test/integration).
package composite

import (
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// FinalizerPrefix comes before the controller's name in the finalizer of its parents.
const FinalizerPrefix = "metacontroller.io/compositecontroller-"

// Shape observes parents with the children that they own, for one declared CompositeController. Use
// [New] to make it. It does not change, except for what it watches.
type Shape struct {
	shape.Watches

	// object is the declaring object, as hooks see it.
	object     *object.Object
	rules      *shape.ParentRules
	childKinds []plan.ChildKind
	// rolling is nil if no kind of child has a rolling update method.
	rolling *rolling
	// custom reports whether a resource is a custom resource.
	custom func(object.Resource) bool
}

var _ shape.Shape = (*Shape)(nil)

// Resources are the resources that a controller's spec names.
type Resources struct {
	Parent   object.Resource
	Children []object.Resource
	// Custom reports whether a resource is a custom resource. Its result may change over time.
	Custom func(object.Resource) bool
}

// New returns the shape of a declared controller. The error names a field of the spec.
func New(o *object.Object, c *v1alpha1.CompositeController, r Resources) (*Shape, error) {
	selected, err := shape.SelectParents(c.Spec.ParentResource.LabelSelector)
	if err != nil {
		return nil, err
	}
	s := &Shape{
		object:  o,
		custom:  r.Custom,
		rolling: newRolling(&c.Spec, r.Children),
		rules: &shape.ParentRules{
			Resource:     r.Parent,
			Selected:     selected,
			Finalizer:    FinalizerPrefix + c.Name,
			Finalizes:    c.Spec.Hooks != nil && c.Spec.Hooks.Finalize != nil,
			IgnoreStatus: c.Spec.ParentResource.IgnoreStatusChanges != nil && *c.Spec.ParentResource.IgnoreStatusChanges,
		},
	}
	for i, rule := range c.Spec.ChildResources {
		method := plan.OnDelete
		if rule.UpdateStrategy != nil && rule.UpdateStrategy.Method != "" {
			method = plan.Method(rule.UpdateStrategy.Method)
		}
		s.childKinds = append(s.childKinds, plan.ChildKind{Resource: r.Children[i], Method: method})
	}
	s.Watches = shape.Watches{
		Parents:   []*shape.ParentRules{s.rules},
		Children:  r.Children,
		Selectors: shape.NewSelectors(c.Spec.GenerateSelector != nil && *c.Spec.GenerateSelector),
	}
	if s.rolling != nil {
		s.Children = append(slices.Clone(r.Children), revisions)
	}
	return s, nil
}
