// Package mapping is the shape of map controllers. For every input that a parent selects, the map
// hook answers the outputs, which the parent owns. The work is done in parts: a key names the
// parent and one input, by its map key. Outputs carry their map key, so that they are found again
// when their input is gone; then the tombstone hook decides which of them to keep. The key of the
// whole parent has the finalizer and the status, which sums up all parts.
//
// The package starts nothing: package pipeline runs a Shape, and package supervisor starts the
// pipeline. The Shape reads the cache and the declared MapController. It is safe for concurrent
// use. Its rules have table tests, stories under testdata, and a property test that compares parts
// in any order with one pass over all inputs; they are tested against a real API server
// (test/integration).
package mapping

import (
	"fmt"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FinalizerPrefix comes before the controller's name in the finalizer of its parents.
const FinalizerPrefix = "metacontroller.io/mapcontroller-"

// Shape observes the inputs that a parent selects, each with its outputs, for one declared
// MapController. Each input is a part with a key of its own. Use [New] to make it, and Begin and
// End to tell it about syncs, so that it can sum up the parts in the parent's status.
type Shape struct {
	// object is the declaring object, as hooks see it.
	object      *object.Object
	rules       *shape.ParentRules
	inputs      []object.Resource
	outputKinds []plan.ChildKind
	// unserved are the declared input resources that the API server does not serve.
	unserved []schema.GroupVersionResource
	// namespaces is the resource of namespaces if parents may select them; else it is zero.
	namespaces object.Resource
	// hasTombstone reports whether a tombstone hook is declared.
	hasTombstone bool
	// custom reports whether a resource is a custom resource; nil for all.
	custom  func(object.Resource) bool
	tracker *parts.Tracker
	// lastParsed is the selection of the parent that was used last.
	lastParsed atomic.Pointer[parsed]
}

var _ shape.Shape = (*Shape)(nil)

// Resources are the resources that a controller's spec names.
type Resources struct {
	Parent object.Resource
	// Inputs are those of the declared input resources that the API server serves.
	Inputs, Outputs []object.Resource
	// Namespaces is the resource of namespaces, for cluster-scoped parents.
	Namespaces object.Resource
	// Custom reports whether a resource is a custom resource; nil for all. Its result may change
	// over time.
	Custom func(object.Resource) bool
}

// New returns the shape of a declared controller. The error names a field of the spec.
func New(o *object.Object, c *v1alpha1.MapController, r Resources) (*Shape, error) {
	selected, err := shape.SelectParents(c.Spec.ParentResource.LabelSelector)
	if err != nil {
		return nil, err
	}
	s := &Shape{
		object: o,
		rules: &shape.ParentRules{
			Resource:     r.Parent,
			Selected:     selected,
			Finalizer:    FinalizerPrefix + c.Name,
			Finalizes:    c.Spec.Hooks != nil && c.Spec.Hooks.Finalize != nil,
			IgnoreStatus: c.Spec.ParentResource.IgnoreStatusChanges != nil && *c.Spec.ParentResource.IgnoreStatusChanges,
		},
		hasTombstone: c.Spec.Hooks != nil && c.Spec.Hooks.Tombstone != nil,
		custom:       r.Custom,
	}
	if !r.Parent.Namespaced {
		s.namespaces = r.Namespaces
	}
	if err := s.addInputs(c.Spec.InputResources, r.Inputs); err != nil {
		return nil, err
	}
	for i, rule := range c.Spec.OutputResources {
		method := plan.OnDelete
		if rule.UpdateStrategy != nil && rule.UpdateStrategy.Method != "" {
			method = plan.Method(rule.UpdateStrategy.Method)
		}
		s.outputKinds = append(s.outputKinds, plan.ChildKind{Resource: r.Outputs[i], Method: method})
	}
	s.tracker = parts.New(len(s.inputs), len(s.outputKinds))
	return s, nil
}

// addInputs adds the declared input resources, each either as served or as not served.
func (s *Shape) addInputs(rules []v1alpha1.InputResourceRule, served []object.Resource) error {
	byName := make(map[schema.GroupVersionResource]object.Resource, len(served))
	for _, r := range served {
		byName[r.GVR()] = r
	}
	for i, rule := range rules {
		r, found := byName[rule.GVR()]
		switch {
		case !found:
			s.unserved = append(s.unserved, rule.GVR())
		case s.rules.Resource.Namespaced && !r.Namespaced:
			return &shape.ParentError{
				Field: fmt.Sprintf("spec.inputResources[%d]", i),
				Problem: fmt.Sprintf("%s is cluster-scoped; expected a namespaced resource, because the parents are namespaced",
					r),
			}
		default:
			s.inputs = append(s.inputs, r)
		}
	}
	return nil
}

// Observe reads the state of a key. With an empty part it is the whole parent, else one input with
// its outputs. It returns nil for a parent that does not exist, and for a part with neither input
// nor outputs.
func (s *Shape) Observe(in shape.Input) (*plan.Observed, error) {
	parent, err := s.rules.Find(in)
	if parent == nil || err != nil {
		return nil, err
	}
	if in.Key.Part == "" {
		return s.observeParent(in, parent)
	}
	return s.observePart(in, parent)
}

// Questions returns the question about a part. There is none about the whole parent, and none about
// detached outputs without a tombstone hook.
func (s *Shape) Questions(o *plan.Observed) []*hook.Question {
	if o.Key.Part == "" {
		return nil
	}
	return s.partQuestions(o)
}

// Desired validates and merges the answers about a part. For the whole parent there is none.
func (s *Shape) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	if in.Observed.Key.Part == "" {
		return s.desiredOfParent(in)
	}
	return s.desiredOfPart(in, answers)
}

// owner returns the parent as the owner of its outputs.
func (s *Shape) owner(parent *object.Object) plan.Owner {
	return plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: s.rules.Resource}
}
