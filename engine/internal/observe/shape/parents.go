package shape

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// ParentRules are a controller's rules for the objects of one resource.
type ParentRules struct {
	Resource object.Resource
	// Selected reports whether an object is a parent of the controller.
	Selected func(*object.Object) bool
	// Finalizer is the name of the controller's finalizer. Finalizes reports whether the controller
	// declares a finalize hook, so that parents must carry the finalizer.
	Finalizer string
	Finalizes bool
	// IgnoreStatus drops events that change only the status.
	IgnoreStatus bool
}

// SelectParents returns the function ParentRules.Selected of spec.parentResource.labelSelector; nil
// selects all objects. The error is a *ParentError.
func SelectParents(declared *metav1.LabelSelector) (func(*object.Object) bool, error) {
	if declared == nil {
		return func(*object.Object) bool { return true }, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(declared)
	if err != nil {
		return nil, &ParentError{Field: "spec.parentResource.labelSelector", Problem: err.Error()}
	}
	return func(o *object.Object) bool { return selector.Matches(labels.Set(o.Labels())) }, nil
}

// Predicate reports whether an event requires a sync. It drops updates that change nothing but the
// resourceVersion, and events of objects that are not selected and were not selected before. If
// IgnoreStatus is set, it also drops changes of the status alone (compatibility:
// ignoreStatusChanges; a change of finalizers or owners is a change).
func (r *ParentRules) Predicate(e cache.Event) bool {
	if e.New == nil {
		return true
	}
	if e.Old != nil && object.EqualButVersion(e.Old, e.New) {
		return false
	}
	if !r.Selected(e.New) && !e.New.HasFinalizer(r.Finalizer) {
		return e.Old != nil && r.Selected(e.Old)
	}
	return !r.IgnoreStatus || e.Old == nil || e.New.Deleting() || !equalButStatus(e.Old, e.New)
}

// Find returns the parent of a key. It is nil if the parent does not exist, or if it is departing
// without the controller's finalizer. The error is a *view.Error if the parents are not known.
func (r *ParentRules) Find(in Input) (*object.Object, error) {
	parents, err := in.Reader.View(r.Resource)
	if err != nil {
		return nil, err
	}
	parent := parents.Get(in.Key.Parent.Namespace, in.Key.Parent.Name)
	if parent == nil || r.Departing(parent) && !r.HasFinalizer(parent) {
		return nil, nil
	}
	return parent, nil
}

// Departing reports whether a parent is being deleted or is no longer selected.
func (r *ParentRules) Departing(o *object.Object) bool { return o.Deleting() || !r.Selected(o) }

// HasFinalizer reports whether a parent carries the controller's finalizer.
func (r *ParentRules) HasFinalizer(o *object.Object) bool { return o.HasFinalizer(r.Finalizer) }

// SkipChildren reports whether the children of a departing parent must not be reconciled: the
// controller has no finalize hook, or the garbage collector deletes or orphans the children.
func (r *ParentRules) SkipChildren(o *object.Object) bool {
	collected := o.Deleting() &&
		(o.HasFinalizer(metav1.FinalizerDeleteDependents) || o.HasFinalizer(metav1.FinalizerOrphanDependents))
	return r.Departing(o) && (!r.Finalizes || collected)
}

// Prepare returns the write that brings the finalizer of a parent in line with the declaration: it
// is added if a finalize hook is declared, and removed if not.
func (r *ParentRules) Prepare(o *object.Object) []plan.Action {
	if r.HasFinalizer(o) == r.Finalizes {
		return nil
	}
	a := plan.Action{
		Verb:      plan.AddFinalizer,
		Resource:  r.Resource,
		Ref:       o.Ref(),
		UID:       o.UID(),
		Finalizer: r.Finalizer,
		Why:       "a finalize hook is declared",
	}
	if !r.Finalizes {
		a.Verb = plan.RemoveFinalizer
		a.Why = "no finalize hook is declared"
	}
	return []plan.Action{a}
}

// equalButStatus reports whether an update of one object left generation, labels, annotations,
// finalizers and owners as they were. If the resource has no generations, it compares everything
// except status and the fields that the server manages.
func equalButStatus(old, current *object.Object) bool {
	if old.Generation() == 0 && current.Generation() == 0 {
		return old.UID() == current.UID() && equalBody(old, current)
	}
	sameUID := func(a, b metav1.OwnerReference) bool { return a.UID == b.UID }
	return old.UID() == current.UID() &&
		old.Generation() == current.Generation() &&
		old.Deleting() == current.Deleting() &&
		maps.Equal(old.Labels(), current.Labels()) &&
		maps.Equal(old.Annotations(), current.Annotations()) &&
		slices.Equal(old.Finalizers(), current.Finalizers()) &&
		slices.EqualFunc(old.OwnerReferences(), current.OwnerReferences(), sameUID)
}

// equalBody reports whether two objects are equal without status, resourceVersion and
// managedFields. An object that cannot be decoded is equal to none.
func equalBody(old, current *object.Object) bool {
	before, err := old.Map()
	if err != nil {
		return false
	}
	after, err := current.Map()
	return err == nil && plan.StableHash(before) == plan.StableHash(after)
}
