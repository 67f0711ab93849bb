package composite

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"k8s.io/apimachinery/pkg/labels"
)

// Observe reads a parent and its children. It returns nil for a parent that does not exist, and for
// a departing one (being deleted or no longer selected) that does not carry our finalizer.
func (s *Shape) Observe(reader view.Reader, key hook.Key, snapshot *shape.OwnedSnapshot) (*plan.Observed, error) {
	parents, err := reader.View(s.rules.Resource)
	if err != nil {
		return nil, err
	}
	parent := parents.Get(key.Parent.Namespace, key.Parent.Name)
	if parent == nil || s.rules.Departing(parent) && !s.rules.HasFinalizer(parent) {
		return nil, nil
	}
	departing := s.rules.Departing(parent)
	selector, err := s.Selectors.Of(parent, departing)
	if err != nil {
		return nil, err
	}
	scope := s.scope(parent, selector)
	claimer := &shape.Claimer{Parent: parent, Owner: scope.Owner, Selector: selector, Departing: departing}
	claims, err := claimer.Children(reader, s.declared, snapshot)
	if err != nil {
		return nil, err
	}
	observed := &plan.Observed{
		Key: key, Parent: parent,
		Children:     claims.Children,
		Finalizing:   departing,
		SkipChildren: s.rules.SkipChildren(parent),
		Scope:        scope,
		Prepare:      append(s.rules.Prepare(parent), claims.Actions...),
	}
	if s.rolling == nil || observed.SkipChildren {
		return observed, nil
	}
	var adopt []plan.Action
	if observed.Revisions, adopt, err = s.records(reader, observed, claimer); err != nil {
		return nil, err
	}
	observed.Prepare = append(observed.Prepare, adopt...)
	return observed, nil
}

// marks require that children of composite controllers are not attachments of a decorator.
var marks = map[string]string{shape.DecoratorAnnotation: ""}

// scope returns the rules for the children of a parent.
func (s *Shape) scope(parent *object.Object, selector labels.Selector) plan.Scope {
	return plan.Scope{
		ChildKinds:      s.declared,
		Owner:           plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: s.rules.Resource},
		ParentNamespace: parent.Namespace(),
		Selector:        selector,
		Labels:          s.Selectors.Labels(parent),
		Marks:           marks,
	}
}
