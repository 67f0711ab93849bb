package mapping

import (
	"iter"
	"strconv"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// observeParent observes the whole parent and its finalizer, without outputs. If something that
// hooks see of the parent has changed, it begins a round of all parts. It begins none while the
// finalizer is missing, because a part is not synced without it.
func (s *Shape) observeParent(in shape.Input, parent *object.Object) (*plan.Observed, error) {
	o := &plan.Observed{
		Key: in.Key, Parent: parent,
		Finalizing:   s.rules.Departing(parent),
		SkipChildren: s.rules.SkipChildren(parent),
		Scope:        plan.Scope{Owner: s.owner(parent), ParentNamespace: parent.Namespace()},
		Prepare:      s.rules.Prepare(parent),
	}
	if o.SkipChildren || len(o.Prepare) > 0 {
		return o, nil
	}
	state, err := s.stateOf(parent)
	if err != nil {
		return nil, err
	}
	return o, s.tracker.Observe(in.Key, state, isCurrent(parent), func() (iter.Seq2[string, int], error) {
		return s.namedInputs(in.Reader, parent)
	})
}

// namedInputs yields the inputs of a parent by map key, each with the index of its resource.
func (s *Shape) namedInputs(r view.Reader, parent *object.Object) (iter.Seq2[string, int], error) {
	ids, err := s.listInputs(r, parent)
	return func(yield func(string, int) bool) {
		for _, id := range ids {
			if !yield(s.keyOf(id), id.resource) {
				return
			}
		}
	}, err
}

// stateOf returns the state of a parent that decides about a new round: generation, labels and
// annotations or, without generations, everything except the status.
func (s *Shape) stateOf(parent *object.Object) (parts.State, error) {
	seen := map[string]any{"labels": plain(parent.Labels()), "annotations": plain(parent.Annotations())}
	if parent.Generation() == 0 {
		body, err := parent.Map()
		if err != nil {
			return parts.State{}, err
		}
		seen = map[string]any{"body": plan.StableHash(body), "metadata": seen}
	}
	return parts.State{
		UID: parent.UID(), Generation: parent.Generation(), Hash: plan.StableHash(seen),
		Departing: s.rules.Departing(parent),
	}, nil
}

// plain converts labels or annotations to the types of decoded JSON.
func plain(values map[string]string) map[string]any {
	all := make(map[string]any, len(values))
	for key, value := range values {
		all[key] = value
	}
	return all
}

// isCurrent reports whether the status of a parent reports the result of all parts at its
// generation.
func isCurrent(parent *object.Object) bool {
	observed, _ := parent.Field("status", observedGeneration)
	return string(observed) == strconv.FormatInt(parent.Generation(), 10)
}

// desiredOfParent returns the desired state of the whole parent: its status, and the removal of the
// finalizer once the finalize hook has finished with all parts.
func (s *Shape) desiredOfParent(in plan.Input) (*plan.Desired, error) {
	parent := in.Observed.Parent
	sum, known := s.tracker.Summary(parent.Ref())
	if !known {
		return &plan.Desired{StatusLater: true, InProgress: true}, nil
	}
	desired := &plan.Desired{InProgress: !sum.Settled}
	if in.Observed.Finalizing && sum.Finalized {
		desired.RemoveFinalizer = s.rules.Finalizer
		return desired, nil
	}
	if !s.ownsStatus() {
		return desired, nil
	}
	status, synced, changed, err := s.status(parent, &sum)
	if err != nil {
		return nil, err
	}
	if changed && !s.tracker.Offer(parent.Ref()) {
		desired.StatusLater = true
		return desired, nil
	}
	desired.Status = status
	desired.Conditions = []hook.Condition{synced}
	return desired, nil
}

// ownsStatus reports whether the status of the parents is the engine's: they are custom resources
// with a status subresource. Otherwise the status is that of another controller, or a write of it
// would make a new generation, and with it a new round of all parts.
func (s *Shape) ownsStatus() bool {
	return s.rules.Resource.HasStatus && (s.custom == nil || s.custom(s.rules.Resource))
}
