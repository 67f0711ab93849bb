// Package composite is the shape of composite controllers: children are found by owner reference
// and selector, adopted and released; the hook's status becomes the parent's.
//
// It runs nothing: the pipeline does, and the supervisor starts it. What it reads comes from the
// cache and from the declared CompositeController. A Shape is immutable and safe for concurrent
// use, except for its selector index, which locks. Its rules are tested purely (observe_test.go)
// and against the real API server (test/integration).
package composite

import (
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/mapper"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/claim"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// FinalizerPrefix comes before the controller's name in the finalizer of its parents.
const FinalizerPrefix = "metacontroller.io/compositecontroller-"

// Shape is one declared composite controller.
type Shape struct {
	// object is the declaring object, as hooks see it.
	object    *object.Object
	rules     shape.ParentRules
	declared  []plan.ChildKind
	generate  bool
	selectors *mapper.Selectors[hook.Key]
	// rolling is nil where no child is updated by a rolling method.
	rolling *rolling
	looks   looks
	// custom reports whether a resource is a custom one.
	custom func(object.Resource) bool
}

var _ shape.Shape = (*Shape)(nil)

// Resources are what a declared controller's spec names, as the caller has resolved it.
type Resources struct {
	Parent   object.Resource
	Children []object.Resource
	// Custom reports whether a resource is a custom one. It may change its mind.
	Custom func(object.Resource) bool
}

// New makes the shape of a declared controller. The error names a field of the spec.
func New(o *object.Object, c *v1alpha1.CompositeController, r Resources) (*Shape, error) {
	selected := labels.Everything()
	if c.Spec.ParentResource.LabelSelector != nil {
		var err error
		if selected, err = metav1.LabelSelectorAsSelector(c.Spec.ParentResource.LabelSelector); err != nil {
			return nil, &shape.ParentError{Field: "spec.parentResource.labelSelector", Problem: err.Error()}
		}
	}
	s := &Shape{
		object:    o,
		generate:  c.Spec.GenerateSelector != nil && *c.Spec.GenerateSelector,
		selectors: mapper.NewSelectors[hook.Key](),
		custom:    r.Custom,
		rolling:   newRolling(&c.Spec, r.Children),
		rules: shape.ParentRules{
			Resource:     r.Parent,
			Selected:     func(o *object.Object) bool { return selected.Matches(labels.Set(o.Labels())) },
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
		s.declared = append(s.declared, plan.ChildKind{Resource: r.Children[i], Method: method})
	}
	return s, nil
}

// Wire tells a controller what to watch: the parents, their children by owner, and orphans that a
// parent's selector takes in.
func (s *Shape) Wire(c *controller.Controller[hook.Key]) {
	c.For(s.rules.Resource, hook.ParentKey, s.rules.Predicate)
	c.Watch(s.rules.Resource, s.track)
	owner, orphans := mapper.Owner(s.rules.Resource, hook.ParentKey), mapper.Orphans(s.selectors)
	for _, d := range s.declared {
		c.Watch(d.Resource, owner, orphans)
	}
	if s.rolling != nil {
		c.Watch(revisions, owner, orphans)
	}
}

// track keeps the index of the parents' selectors; it maps to no keys.
func (s *Shape) track(old, current *object.Object) []hook.Key {
	if current == nil {
		s.selectors.Delete(hook.ParentKey(old.Ref()))
		return nil
	}
	key := hook.ParentKey(current.Ref())
	selector, err := claim.Selector(current, s.generate)
	if err != nil || current.Deleting() { // the parent's own sync reports the error
		s.selectors.Delete(key)
		return nil
	}
	s.selectors.Set(key, current.Namespace(), selector)
	return nil
}
