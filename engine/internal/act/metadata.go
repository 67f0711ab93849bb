package act

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// patchOwner adds (Adopt) or removes (Release) the parent's owner reference. An adoption begins
// with a live read of the parent, because the garbage collector deletes the children of a missing
// parent (Kubernetes' controller reference manager has the same rule).
func (w *Writer) patchOwner(ctx context.Context, a plan.Action) (*object.Object, error) {
	present, err := w.Get(ctx, a.Resource, a.Ref)
	if err != nil {
		return nil, err
	}
	if present.UID() != a.UID || present.ResourceVersion() != a.ResourceVersion {
		return nil, ErrStale
	}
	references := withoutOwner(present.OwnerReferences(), a.Owner.UID)
	if a.Verb == plan.Adopt {
		if err := w.parentAlive(ctx, a); err != nil {
			return nil, err
		}
		references = append(references, OwnerReference(a.Owner))
	}
	return w.patchMetadata(ctx, a, map[string]any{"ownerReferences": references})
}

// parentAlive returns an error unless the parent, read live, is the observed one and is not being
// deleted.
func (w *Writer) parentAlive(ctx context.Context, a plan.Action) error {
	_, err := w.liveParent(ctx, a)
	return err
}

// liveParent reads the parent live. The error is ErrStale if it is not the observed one, or is
// being deleted.
func (w *Writer) liveParent(ctx context.Context, a plan.Action) (*object.Object, error) {
	if a.Owner.Resource.Plural == "" {
		return nil, errors.New("the owner's resource is not known")
	}
	ref := object.Ref{GVK: a.Owner.GVK, Name: a.Owner.Name}
	if a.Owner.Resource.Namespaced {
		ref.Namespace = a.Ref.Namespace
	}
	parent, err := w.Get(ctx, a.Owner.Resource, ref)
	if Gone(err) || err == nil && (parent.UID() != a.Owner.UID || parent.Deleting()) {
		return nil, fmt.Errorf("parent %s is gone or being deleted: %w", ref, ErrStale)
	}
	return parent, err
}

// OwnerReference returns the reference that makes owner the controller of an object.
func OwnerReference(owner plan.Owner) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: owner.GVK.GroupVersion().String(), Kind: owner.GVK.Kind, Name: owner.Name, UID: owner.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

func withoutOwner(references []metav1.OwnerReference, uid types.UID) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(references), func(r metav1.OwnerReference) bool { return r.UID == uid })
}

// patchFinalizers adds or removes a finalizer of the parent. It starts from a live read, so that it
// keeps all other finalizers.
func (w *Writer) patchFinalizers(ctx context.Context, a plan.Action) (*object.Object, error) {
	present, err := w.Get(ctx, a.Resource, a.Ref)
	if err != nil {
		return nil, err
	}
	if present.UID() != a.UID {
		return nil, ErrStale
	}
	a.ResourceVersion = present.ResourceVersion()
	others := slices.DeleteFunc(slices.Clone(present.Finalizers()), func(f string) bool { return f == a.Finalizer })
	if a.Verb == plan.RemoveFinalizer {
		return w.patchMetadata(ctx, a, map[string]any{"finalizers": others})
	}
	if present.Deleting() {
		return nil, ErrStale
	}
	return w.patchMetadata(ctx, a, map[string]any{"finalizers": append(others, a.Finalizer)})
}

// patchLabels patches labels and annotations, and removes the action's finalizer if it has one. The
// action's resourceVersion is the precondition.
func (w *Writer) patchLabels(ctx context.Context, a plan.Action) (*object.Object, error) {
	fields := map[string]any{}
	if len(a.Labels) > 0 {
		fields["labels"] = a.Labels
	}
	if len(a.Annotations) > 0 {
		fields["annotations"] = a.Annotations
	}
	if a.Finalizer != "" {
		present, err := w.Get(ctx, a.Resource, a.Ref)
		if err != nil {
			return nil, err
		}
		if present.UID() != a.UID || present.ResourceVersion() != a.ResourceVersion {
			return nil, ErrStale
		}
		fields["finalizers"] = slices.DeleteFunc(slices.Clone(present.Finalizers()),
			func(f string) bool { return f == a.Finalizer })
	}
	return w.patchMetadata(ctx, a, fields)
}

// patchMetadata merges fields into metadata. The UID and the resourceVersion are preconditions.
func (w *Writer) patchMetadata(ctx context.Context, a plan.Action, fields map[string]any) (*object.Object, error) {
	fields["uid"], fields["resourceVersion"] = a.UID, a.ResourceVersion
	return w.Patch(ctx, a.Resource, a.Ref, types.MergePatchType, map[string]any{"metadata": fields}, "")
}

// resultOf returns the name of an error for metrics and spans, out of a bounded set.
func resultOf(err error) string {
	var taken *TakenError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, ErrStale):
		return "stale"
	case errors.As(err, &taken):
		return "NameTaken"
	case errors.Is(err, ErrFenced):
		return "fenced"
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return "canceled"
	}
	if reason := apierrors.ReasonForError(err); reason != "" {
		return string(reason)
	}
	return "error"
}
