package mapping

import (
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
)

// observeParent observes the whole parent and its finalizer, without outputs.
func (s *Shape) observeParent(in shape.Input, parent *object.Object) (*plan.Observed, error) {
	return &plan.Observed{
		Key: in.Key, Parent: parent,
		Finalizing:   s.rules.Departing(parent),
		SkipChildren: s.rules.SkipChildren(parent),
		Scope:        plan.Scope{Owner: s.owner(parent), ParentNamespace: parent.Namespace()},
		Prepare:      s.rules.Prepare(parent),
	}, nil
}

// desiredOfParent returns the desired state of the whole parent.
func (s *Shape) desiredOfParent(plan.Input) (*plan.Desired, error) { return &plan.Desired{}, nil }
