package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TakenError reports that a child's name belongs to an object that is not this parent's.
type TakenError struct {
	// By describes the existing object: "has no controller".
	By string
	// Expected is the expected state; empty means an object of this parent, or none.
	Expected string
}

func (e *TakenError) Error() string {
	return fmt.Sprintf("the object exists already and %s; expected %s", e.By,
		cmp.Or(e.Expected, "an object of this parent, or none"))
}

// CollectedError reports that a child's name belonged to an object of an earlier parent, which has
// been deleted. The next sync creates the child; the error is an ErrStale.
type CollectedError struct {
	Ref object.Ref
	// Owner describes the earlier parent.
	Owner string
}

func (e *CollectedError) Error() string {
	return fmt.Sprintf("%s was controlled by %s, which no longer exists, and has been deleted", e.Ref, e.Owner)
}

// Unwrap makes the error an ErrStale.
func (e *CollectedError) Unwrap() error { return ErrStale }

// explainExisting returns the reason why a child's name is taken. The engine never takes over an
// existing object.
func (w *Writer) explainExisting(ctx context.Context, a plan.Action) error {
	present, err := w.Get(ctx, a.Resource, a.Ref)
	if Gone(err) { // meanwhile
		return ErrStale
	}
	if err != nil {
		return err
	}
	owner := present.ControllerRef()
	switch {
	case owner == nil:
		return &TakenError{By: "has no controller and is not selected by the parent"}
	case owner.UID == a.Owner.UID && (present.Deleting() || marked(present, a.Marks)):
		return ErrStale
	case owner.UID == a.Owner.UID && a.Marks[plan.MapController] != "" &&
		present.Annotations()[plan.MapController] == a.Marks[plan.MapController]:
		return &TakenError{
			By: "is an output of the input " + present.Annotations()[plan.MapKey],
			Expected: fmt.Sprintf("another name for the output of the input %s, because an output belongs to one input",
				a.Marks[plan.MapKey]),
		}
	case owner.UID == a.Owner.UID:
		return &TakenError{By: "belongs to another controller of the same parent"}
	case earlier(owner, a.Owner):
		return w.deleteLeftover(ctx, a, present, owner)
	}
	return &TakenError{By: fmt.Sprintf("is controlled by %s %q", owner.Kind, owner.Name)}
}

// marked reports whether an object carries the annotations of its owner's controller.
func marked(o *object.Object, marks map[string]string) bool {
	for key, value := range marks {
		if o.Annotations()[key] != value {
			return false
		}
	}
	return true
}

// earlier reports whether a reference names the owner's kind, in any version, and its name, with
// another UID: an earlier object of that name.
func earlier(r *metav1.OwnerReference, owner plan.Owner) bool {
	gv, err := schema.ParseGroupVersion(r.APIVersion)
	return err == nil && gv.Group == owner.GVK.Group && r.Kind == owner.GVK.Kind && r.Name == owner.Name &&
		r.UID != owner.UID
}

// leftoverAge is the time that Kubernetes' garbage collector has to delete the children of an
// earlier parent.
const leftoverAge = time.Minute

// deleteLeftover deletes a child of an earlier parent, as Kubernetes' garbage collector would. The
// collector identifies owners by UID. It misses the deletion of a parent that was created again
// under its name while the collector had no watch.
//
// The child is deleted only if the parent, read live, has another UID than the child's owner and
// has existed for a minute, and if the child has no other owner. The UID and the resourceVersion
// are preconditions. If the parent cannot be read, nothing is deleted.
func (w *Writer) deleteLeftover(
	ctx context.Context, a plan.Action, o *object.Object, owner *metav1.OwnerReference,
) error {
	who := fmt.Sprintf("an earlier %s %q with the UID %s", owner.Kind, owner.Name, owner.UID)
	taken := &TakenError{
		By: fmt.Sprintf("is controlled by %s, not by the present one with the UID %s", who, a.Owner.UID),
		Expected: fmt.Sprintf(
			"Kubernetes' garbage collector to delete it; Hookloop deletes it when the parent is older than %s",
			leftoverAge,
		),
	}
	switch {
	case o.Deleting():
		taken.Expected = "its finalizers to be removed, because it is being deleted"
		return taken
	case len(o.OwnerReferences()) > 1:
		taken.Expected = "somebody to delete it or to remove this owner reference, because it has other owners"
		return taken
	}
	parent, err := w.liveParent(ctx, a)
	switch {
	case errors.Is(err, ErrStale): // the present parent, too, is an earlier one
		return err
	case err != nil:
		return fmt.Errorf("%w (the parent could not be read: %w)", taken, err)
	}
	created := parent.Meta().GetCreationTimestamp()
	if created.IsZero() || w.Clock.Since(created.Time) < leftoverAge {
		return taken
	}
	if _, err := w.Do(ctx, plan.Action{
		Verb:            plan.Delete,
		Resource:        a.Resource,
		Ref:             a.Ref,
		UID:             o.UID(),
		ResourceVersion: o.ResourceVersion(),
		Why:             "left by " + who,
	}); err != nil {
		return err
	}
	return &CollectedError{Ref: a.Ref, Owner: who}
}
