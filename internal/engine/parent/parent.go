// Package parent holds the rules that all kinds of controller share about their parents: which
// objects of a resource count, when a parent leaves, and the controller's finalizer on it.
//
// It reads no cache and writes nothing: the shapes ask it about one object, and carry its actions
// in what they observe. Its values are immutable and safe for concurrent use. It is tested through
// the shapes.
package parent

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rules are a controller's rules for the objects of one resource.
type Rules struct {
	Resource object.Resource
	// Selected says whether an object counts.
	Selected func(*object.Object) bool
	// Finalizer is the controller's; Finalizes says that a finalize hook is declared, so that
	// parents are to carry it.
	Finalizer string
	Finalizes bool
	// IgnoreStatus drops changes of status alone.
	IgnoreStatus bool
}

// Concerns drops events that need no sync: of objects that are not selected and never were, and,
// where the controller asks for it, changes of status alone (compatibility: ignoreStatusChanges,
// with finalizers and owners counted as changes).
func (r *Rules) Concerns(e cache.Event) bool {
	if e.New == nil {
		return true
	}
	if !r.Selected(e.New) && !e.New.HasFinalizer(r.Finalizer) {
		return e.Old != nil && r.Selected(e.Old)
	}
	return !r.IgnoreStatus || e.Old == nil || e.New.Deleting() || !sameButStatus(e.Old, e.New)
}

// Leaving says whether a parent is being deleted or no longer selected.
func (r *Rules) Leaving(o *object.Object) bool { return o.Deleting() || !r.Selected(o) }

// Held says whether a parent carries the controller's finalizer.
func (r *Rules) Held(o *object.Object) bool { return o.HasFinalizer(r.Finalizer) }

// Untouched says that the children of a parent which leaves are not to be reconciled: no finalize
// hook speaks for them, or the garbage collector is at work on them, or was told to leave them.
func (r *Rules) Untouched(o *object.Object) bool {
	collected := o.Deleting() &&
		(o.HasFinalizer(metav1.FinalizerDeleteDependents) || o.HasFinalizer(metav1.FinalizerOrphanDependents))
	return r.Leaving(o) && (!r.Finalizes || collected)
}

// Prepare adds the finalizer where a finalize hook is declared, and removes it where none is any
// more.
func (r *Rules) Prepare(o *object.Object) []plan.Action {
	if r.Held(o) == r.Finalizes {
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
		a.Verb, a.Why = plan.RemoveFinalizer, "no finalize hook is declared"
	}
	return []plan.Action{a}
}

// sameButStatus reports whether an update, of the same object, changed none of generation, labels,
// annotations, finalizers and owners; for a resource that counts no generations, nothing but status
// and what the server manages.
func sameButStatus(old, current *object.Object) bool {
	if old.Generation() == 0 && current.Generation() == 0 {
		return old.UID() == current.UID() && sameBody(old, current)
	}
	return old.UID() == current.UID() && old.Generation() == current.Generation() && old.Deleting() == current.Deleting() &&
		maps.Equal(old.Labels(), current.Labels()) &&
		maps.Equal(old.Annotations(), current.Annotations()) &&
		slices.Equal(old.Finalizers(), current.Finalizers()) &&
		slices.EqualFunc(old.OwnerReferences(), current.OwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}

// sameBody compares two objects without status, resourceVersion and managedFields. What cannot be
// read is another one.
func sameBody(old, current *object.Object) bool {
	before, err := old.Map()
	if err != nil {
		return false
	}
	after, err := current.Map()
	return err == nil && plan.StableHash(before) == plan.StableHash(after)
}
