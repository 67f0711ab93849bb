package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The verbs of writes beside those of package plan.
const (
	// PatchLabels patches an object's labels and annotations.
	PatchLabels plan.Verb = "patch"
	// PatchStatus changes an object's status.
	PatchStatus plan.Verb = "status"
)

// Write is one write that a Go controller decides.
type Write struct {
	// Action has the verb, the object, the preconditions and the cause. The JSON is in Body instead
	// of the action's own.
	plan.Action
	// Body is the whole object for Create and Update, the fields to apply for ServerSideApply, and
	// the merge patch of the status for PatchStatus. Update and ServerSideApply have their
	// preconditions in it.
	Body []byte
	// Unchanged makes the resourceVersion a precondition of Delete, too.
	Unchanged bool
	// Propagation is the policy of Delete; empty for the resource's default.
	Propagation metav1.DeletionPropagation
}

// Object carries out a write and returns the server's answer; nil after a delete. Unlike Do, it
// creates an object if there is none to apply to, and never looks at the owner of an existing
// object.
//
// Every error names the write. A conflict is an ErrStale, which keeps the API server's error; the
// key of the reconcile waits for the newer state of the object (package expectations). The
// error about a Secret has no text of the API server, which may contain data.
func (w *Writer) Object(ctx context.Context, o Write) (*object.Object, error) {
	subresource := ""
	if o.Verb == PatchStatus {
		subresource = statusOf(o.Resource)
	}
	written, err := w.guarded(ctx, o.Action, subresource, wrapAnswer, func(ctx context.Context) (*object.Object, error) {
		switch o.Verb {
		case plan.Create:
			return w.sendObject(ctx, o, whole(http.MethodPost, path(o.Resource, o.Ref.Namespace, ""), o.Body))
		case plan.Update:
			return w.sendObject(ctx, o, whole(http.MethodPut, pathOf(o.Resource, o.Ref), o.Body))
		case plan.ServerSideApply:
			return w.sendObject(ctx, o, applying(pathOf(o.Resource, o.Ref), o.Body))
		case PatchStatus:
			return w.patchStatus(ctx, o, subresource)
		case plan.Delete:
			preconditions := &metav1.Preconditions{UID: &o.UID}
			if o.Unchanged {
				preconditions.ResourceVersion = &o.ResourceVersion
			}
			return nil, w.deleteObject(ctx, o.Action, preconditions, o.Propagation)
		}
		return w.perform(ctx, o.Action)
	})
	if errors.Is(err, ErrStale) && o.ResourceVersion != "" {
		expectations.Refused(ctx, o.Resource, o.Ref, o.UID, o.ResourceVersion)
	}
	return written, err
}

// sendObject sends a write of a whole object.
func (w *Writer) sendObject(ctx context.Context, o Write, q apiRequest) (*object.Object, error) {
	if o.Manager != "" {
		q = q.param("fieldManager", o.Manager)
	}
	return w.write(ctx, o.Resource, w.validated(q))
}

// patchStatus merges the body into the status. The UID and the resourceVersion are preconditions.
func (w *Writer) patchStatus(ctx context.Context, o Write, subresource string) (*object.Object, error) {
	patch := map[string]any{
		"metadata": map[string]any{"uid": o.UID, "resourceVersion": o.ResourceVersion},
		"status":   json.RawMessage(o.Body),
	}
	return w.Patch(ctx, o.Resource, o.Ref, types.MergePatchType, patch, subresource)
}

// conflict is an ErrStale that keeps the API server's error.
type conflict struct{ answer error }

func (c conflict) Error() string   { return ErrStale.Error() }
func (c conflict) Unwrap() []error { return []error{ErrStale, c.answer} }

// wrapAnswer names the write of a Go controller, and keeps the API server's error for it.
func wrapAnswer(a plan.Action, err error) error {
	if a.Resource.GVK.Kind == "Secret" && a.Resource.GVK.Group == "" {
		err = withoutText(err)
	}
	if apierrors.IsConflict(err) {
		err = conflict{err}
	}
	return fmt.Errorf("%s %s: %w", a.Verb, a.Ref, err)
}

// withoutText replaces the text of an API server's error by its reason and the fields at fault: the
// text may quote values.
func withoutText(err error) error {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) || errors.Is(err, ErrFenced) {
		return err
	}
	status := answer.Status()
	var fields []string
	if status.Details != nil {
		details := *status.Details
		details.Causes = slices.Clone(details.Causes)
		for i := range details.Causes {
			details.Causes[i].Message = ""
			fields = append(fields, details.Causes[i].Field)
		}
		status.Details = &details
	}
	status.Message = fmt.Sprintf("the API server answers %d %s", status.Code, status.Reason)
	if len(fields) > 0 {
		status.Message += ": " + strings.Join(fields, ", ")
	}
	return &apierrors.StatusError{ErrStatus: status}
}
