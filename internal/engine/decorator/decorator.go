// Package decorator is the shape of decorator controllers: they add labels, annotations, a status
// and attachments to objects that something else owns.
//
// It runs nothing: the pipeline does, and the supervisor starts it. What it reads comes from the
// cache and from the declared DecoratorController. A Shape is immutable and safe for concurrent
// use. Its rules are tested purely here and against the real API server (test/integration).
package decorator

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/shape"
)

const (
	// FinalizerPrefix comes before the controller's name in the finalizer of its targets.
	FinalizerPrefix = "metacontroller.io/decoratorcontroller-"
	// Annotation names, on each attachment, the controller that it belongs to (compatibility:
	// ownership).
	Annotation = shape.DecoratorAnnotation
)

// Shape is one declared decorator controller.
type Shape struct {
	shape.Watches

	// object is the declaring object, as hooks see it.
	object   *object.Object
	declared []plan.ChildKind
}

var _ shape.Shape = (*Shape)(nil)

// New makes the shape of a declared controller, whose resources and attachments the caller has
// resolved, in the order of the spec. The error names a field of the spec.
func New(o *object.Object, c *v1alpha1.DecoratorController, resources, attachments []object.Resource) (*Shape, error) {
	s := &Shape{object: o, Watches: shape.Watches{Children: attachments}}
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
		s.declared = append(s.declared, plan.ChildKind{Resource: r, Method: method})
	}
	return s, nil
}

// Observe reads a target and its attachments. It returns nil for a target that is gone, or that
// leaves (is being deleted or no longer selected) without our finalizer: its attachments stay.
func (s *Shape) Observe(reader view.Reader, key hook.Key, _ *shape.OwnedSnapshot) (*plan.Observed, error) {
	i := slices.IndexFunc(s.Parents, func(t *shape.ParentRules) bool { return t.Resource.GVK == key.Parent.GVK })
	if i < 0 {
		return nil, nil
	}
	rules := s.Parents[i]
	targets, err := reader.View(rules.Resource)
	if err != nil {
		return nil, err
	}
	target := targets.Get(key.Parent.Namespace, key.Parent.Name)
	if target == nil || rules.Departing(target) && !rules.HasFinalizer(target) {
		return nil, nil
	}
	attachments, err := s.attachments(reader, target)
	if err != nil {
		return nil, err
	}
	return &plan.Observed{
		Key: key, Parent: target,
		Children:     attachments,
		Finalizing:   rules.Departing(target),
		SkipChildren: rules.SkipChildren(target),
		Scope: plan.Scope{
			Field: "attachments", ChildKinds: s.declared, ParentNamespace: target.Namespace(),
			Owner:       plan.Owner{GVK: target.GVK(), Name: target.Name(), UID: target.UID(), Resource: rules.Resource},
			Annotations: map[string]string{Annotation: s.object.Name()},
			Marks:       map[string]string{Annotation: s.object.Name()},
		},
		Prepare: rules.Prepare(target),
	}, nil
}

// attachments are the objects that the target controls and that carry our name: other controllers
// may attach to it, too.
func (s *Shape) attachments(reader view.Reader, target *object.Object) (view.Set, error) {
	own := make([]view.List, len(s.declared))
	for i, d := range s.declared {
		v, err := reader.View(d.Resource)
		if err != nil {
			return view.Set{}, err
		}
		own[i] = v.OwnedBy(target.UID()).Where(
			func(o *object.Object) bool { return o.Annotations()[Annotation] == s.object.Name() },
		)
	}
	return view.SetOf(own...), nil
}

// Questions is one question: to the finalize hook while the target leaves, else to the sync hook.
// None where nothing is to be reconciled.
func (s *Shape) Questions(o *plan.Observed) []*hook.Question {
	if o.SkipChildren {
		return nil
	}
	q := &hook.Question{Kind: hook.Decorator, Op: hook.Sync, Controller: s.object, Parent: o.Parent}
	if o.Finalizing {
		q.Op = hook.Finalize
	}
	for _, d := range s.declared {
		q.Children = append(q.Children, hook.Group{Resource: d.Resource, Objects: o.Children.Of(d.Resource.GVK)})
	}
	return []*hook.Question{q}
}

// Desired validates the answer and stamps its attachments. What the answer leaves out of labels,
// annotations and status stays as it is.
func (s *Shape) Desired(in plan.Input, answers []*hook.Answer) (*plan.Desired, error) {
	o, answer := in.Observed, answers[0]
	children, err := plan.Children(in, answer)
	if err != nil {
		return nil, err
	}
	if err := plan.CheckMetadata(answer.Labels, answer.Annotations); err != nil {
		return nil, err
	}
	desired := &plan.Desired{
		Children: children, Labels: answer.Labels, Annotations: answer.Annotations, ResyncAfter: answer.ResyncAfter,
	}
	if desired.Conditions, err = plan.Conditions(answer); err != nil {
		return nil, err
	}
	if desired.Events, err = plan.Events(answer); err != nil {
		return nil, err
	}
	if desired.Status, err = status(o.Parent, answer); err != nil {
		return nil, err
	}
	if o.Finalizing && answer.Finalized {
		desired.RemoveFinalizer = FinalizerPrefix + s.object.Name()
	}
	return desired, nil
}

// status is the target's whole new status: the answer's or, where that has conditions alone, the
// present one, into which they are put; nil leaves it as it is.
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
