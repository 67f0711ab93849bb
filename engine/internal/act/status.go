package act

import (
	"context"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// ReplaceStatus makes status, a JSON object, the whole status of an object, and returns the
// server's answer. The error is ErrStale if the object has changed since it was observed.
func (w *Writer) ReplaceStatus(
	ctx context.Context, r object.Resource, o *object.Object, status map[string]any,
) (*object.Object, error) {
	subresource := statusOf(r)
	a := plan.Action{Verb: PatchStatus, Resource: r, Ref: o.Ref(), UID: o.UID(), ResourceVersion: o.ResourceVersion()}
	return w.guarded(ctx, a, subresource, wrapError, func(ctx context.Context) (*object.Object, error) {
		return w.Patch(ctx, r, o.Ref(), types.JSONPatchType, replacement(o, status), subresource)
	})
}

// statusOf returns the subresource that holds a resource's status; empty for the object itself.
func statusOf(r object.Resource) string {
	if r.HasStatus {
		return "status"
	}
	return ""
}

// replacement returns the JSON patch (RFC 6902) that sets the whole status. It replaces the
// resourceVersion by the observed one, which makes that a precondition: the API server answers 409
// if it differs.
func replacement(o *object.Object, status map[string]any) []any {
	return []any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion()},
		map[string]any{"op": "add", "path": "/status", "value": status},
	}
}
