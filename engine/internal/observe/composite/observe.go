package composite

import (
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Observe reads a parent and its children. It returns nil for a parent that does not exist, and for
// a departing one (being deleted or no longer selected) that does not carry our finalizer.
func (s *Shape) Observe(in shape.Input) (*plan.Observed, error) {
	parent, err := s.rules.Find(in)
	if parent == nil || err != nil {
		return nil, err
	}
	departing := s.rules.Departing(parent)
	selector, err := s.Selectors.Of(parent, departing)
	if err != nil {
		return nil, err
	}
	scope := s.scope(parent, selector)
	claimer := &shape.Claimer{Parent: parent, Owner: scope.Owner, Selector: selector, Departing: departing}
	claims, err := claimer.Children(in, s.childKinds)
	if err != nil {
		return nil, err
	}
	observed := &plan.Observed{
		Key: in.Key, Parent: parent,
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
	observed.Revisions, adopt, err = s.revisions(in, observed, claimer)
	if err != nil {
		return nil, err
	}
	observed.Prepare = append(observed.Prepare, adopt...)
	return observed, nil
}

// marks require that children of composite controllers are neither attachments of a decorator nor
// outputs of a map controller.
var marks = shape.Unmarked()

// scope returns the rules for the children of a parent.
func (s *Shape) scope(parent *object.Object, selector labels.Selector) plan.Scope {
	return plan.Scope{
		ChildKinds:      s.childKinds,
		Owner:           plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: s.rules.Resource},
		ParentNamespace: parent.Namespace(),
		Selector:        selector,
		Labels:          s.Selectors.Labels(parent),
		Marks:           marks,
	}
}
