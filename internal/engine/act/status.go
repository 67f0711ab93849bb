package act

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// ReplaceStatus makes status, a JSON object, the whole status of an object, and returns the
// server's answer. The error is ErrStale if the object has changed since it was observed.
func (w *Writer) ReplaceStatus(
	ctx context.Context, r object.Resource, o *object.Object, status map[string]any,
) (*object.Object, error) {
	subresource := ""
	if r.HasStatus {
		subresource = "status"
	}
	ctx, span := w.Tracer.Start(ctx, spanName("patch", r, subresource), trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("hookloop.write.verb", "status"),
			attribute.String("hookloop.write.resource", r.String()),
			attribute.String("k8s.namespace.name", o.Namespace()),
			attribute.String("hookloop.write.name", o.Name())),
	)
	defer span.End()
	written, err := w.Patch(ctx, r, o.Ref(), types.JSONPatchType, replacement(o, status), subresource)
	err = statusError(o, err)
	result := resultOf(err)
	if err != nil {
		span.SetStatus(codes.Error, result)
	}
	w.Meter.Wrote("status", result)
	span.SetAttributes(attribute.String("hookloop.write.result", result))
	return written, err
}

func statusError(o *object.Object, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsConflict(err) || Gone(err) {
		err = ErrStale
	}
	return fmt.Errorf("status of %s: %w", o.Ref(), err)
}

// replacement returns the JSON patch (RFC 6902) that sets the whole status. It replaces the
// resourceVersion by the observed one, which makes that a precondition: the API server answers 409
// if it differs.
func replacement(o *object.Object, status map[string]any) []map[string]any {
	return []map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion()},
		{"op": "add", "path": "/status", "value": status},
	}
}
