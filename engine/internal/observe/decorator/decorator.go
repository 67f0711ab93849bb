// Package decorator is the shape of decorator controllers. They add labels, annotations, a status
// and attachments to objects that belong to others.
//
// The package starts nothing: package pipeline runs a Shape, and package supervisor starts the
// pipeline. The Shape reads the cache and the declared DecoratorController. It is immutable and
// safe for concurrent use. Its rules have table tests and are tested against a real API server
// (test/integration).
package decorator

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
)

// FinalizerPrefix comes before the controller's name in the finalizer of its targets.
const FinalizerPrefix = "metacontroller.io/decoratorcontroller-"

// Annotation names the controller that an attachment belongs to (compatibility: ownership).
var Annotation = shape.DecoratorAnnotation

// Shape observes existing objects with what was attached to them, for one declared
// DecoratorController. Use [New] to make it. It does not change.
type Shape struct {
	shape.Watches

	// object is the declaring object, as hooks see it.
	object     *object.Object
	childKinds []plan.ChildKind
	// marks distinguish the attachments from the objects of other controllers.
	marks map[string]string
}

var _ shape.Shape = (*Shape)(nil)

// New returns the shape of a declared controller. The resources are those of the spec, in its
// order. The error names a field of the spec.
func New(o *object.Object, c *v1alpha1.DecoratorController, resources, attachments []object.Resource) (*Shape, error) {
	s := &Shape{object: o, Watches: shape.Watches{Children: attachments}, marks: shape.Unmarked()}
	s.marks[Annotation] = c.Name
	for i, r := range resources {
		rule := c.Spec.Resources[i]
		selected, err := selector(rule)
		if err != nil {
			return nil, &shape.ParentError{Field: fmt.Sprintf("spec.resources[%d]", i), Problem: err.Error()}
		}
		s.Parents = append(s.Parents, &shape.ParentRules{
			Resource: r, Selected: selected,
			Finalizer: FinalizerPrefix + c.Name, Finalizes: c.Spec.Hooks != nil && c.Spec.Hooks.Finalize != nil,
			IgnoreStatus: rule.IgnoreStatusChanges != nil && *rule.IgnoreStatusChanges,
		})
	}
	for i, r := range attachments {
		method := plan.OnDelete
		if strategy := c.Spec.Attachments[i].UpdateStrategy; strategy != nil && strategy.Method != "" {
			method = plan.Method(strategy.Method)
		}
		s.childKinds = append(s.childKinds, plan.ChildKind{Resource: r, Method: method})
	}
	return s, nil
}

// Observe reads a target and its attachments. It returns nil for a target that does not exist, and
// for a departing one (being deleted or no longer selected) that does not carry our finalizer: its
// attachments stay.
func (s *Shape) Observe(in shape.Input) (*plan.Observed, error) {
	i := slices.IndexFunc(s.Parents, func(r *shape.ParentRules) bool { return r.Resource.GVK == in.Key.Parent.GVK })
	if i < 0 {
		return nil, nil
	}
	rules := s.Parents[i]
	target, err := rules.Find(in)
	if target == nil || err != nil {
		return nil, err
	}
	isOurs := func(o *object.Object) bool { return o.Annotations()[Annotation] == s.object.Name() }
	attachments, err := shape.Owned(in, target, s.childKinds, isOurs)
	if err != nil {
		return nil, err
	}
	return &plan.Observed{
		Key: in.Key, Parent: target,
		Children:     attachments,
		Finalizing:   rules.Departing(target),
		SkipChildren: rules.SkipChildren(target),
		Scope: plan.Scope{
			Field: "attachments", ChildKinds: s.childKinds, ParentNamespace: target.Namespace(),
			Owner:       plan.Owner{GVK: target.GVK(), Name: target.Name(), UID: target.UID(), Resource: rules.Resource},
			Annotations: map[string]string{Annotation: s.object.Name()},
			Marks:       s.marks,
		},
		Prepare: rules.Prepare(target),
	}, nil
}

// Questions returns one question, or none if the attachments are not to be reconciled.
func (s *Shape) Questions(o *plan.Observed) []*hook.Question {
	q := shape.Question(hook.Decorator, s.object, o)
	if q == nil {
		return nil
	}
	return []*hook.Question{q}
}

// Desired validates the answer and stamps its attachments. Labels, annotations and a status that
// the answer leaves out stay as they are.
func (s *Shape) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	answer := answers[0]
	desired, err := shape.Desired(in, answers, FinalizerPrefix+s.object.Name())
	if err != nil {
		return nil, err
	}
	if err := plan.CheckMetadata(answer.Labels, answer.Annotations); err != nil {
		return nil, err
	}
	desired.Labels = answer.Labels
	desired.Annotations = answer.Annotations
	desired.Status, err = status(in.Observed.Parent, answer)
	return desired, err
}

// status returns the target's whole new status; nil leaves the status as it is. If the answer has
// conditions but no status, they are added to the present one.
func status(target *object.Object, answer *hook.Answer) (map[string]any, error) {
	raw := []byte(answer.Status)
	if raw == nil && len(answer.Conditions) > 0 {
		if present, there := target.Field("status"); there && string(present) != "null" {
			raw = present
		} else {
			raw = []byte("{}")
		}
	}
	if raw == nil {
		return nil, nil
	}
	status, err := object.DecodeMap(raw)
	if err != nil {
		return nil, &plan.AnswerError{Index: -1, Item: "status", Problem: err.Error() + ", expected an object"}
	}
	return status, nil
}
