package report

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/merge"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Status writes statuses.
type Status struct {
	writer *act.Writer
	tracer trace.Tracer
	meter  act.Meter
}

// NewStatus makes a Status that writes through writer.
func NewStatus(writer *act.Writer, tracer trace.Tracer, meter act.Meter) *Status {
	return &Status{writer: writer, tracer: tracer, meter: meter}
}

// Replace makes status (a JSON object) the whole status of o, unless it is already. It returns the
// server's answer, or nil if nothing was written. act.ErrStale is returned where o has changed
// since it was observed.
func (s *Status) Replace(
	ctx context.Context,
	r object.Resource,
	o *object.Object,
	status map[string]any,
) (*object.Object, error) {
	same, err := Same(o, status)
	if err != nil || same {
		return nil, err
	}
	subresource := ""
	if r.HasStatus {
		subresource = "status"
	}
	ctx, span := s.tracer.Start(
		ctx,
		act.SpanName("patch", r, subresource),
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(
			attribute.String("hookloop.write.verb", "status"),
			attribute.String("hookloop.write.resource", r.String()),
			attribute.String("k8s.namespace.name", o.Namespace()),
			attribute.String("hookloop.write.name", o.Name()),
		),
	)
	defer span.End()
	written, err := s.writer.Patch(ctx, r, o.Ref(), types.JSONPatchType, replacement(o, status), subresource)
	err = statusError(o, err)
	result := act.ResultOf(err)
	if err != nil {
		span.SetStatus(codes.Error, result)
	}
	s.meter.Wrote("status", result)
	span.SetAttributes(attribute.String("hookloop.write.result", result))
	return written, err
}

func statusError(o *object.Object, err error) error {
	if err == nil {
		return nil
	}
	if apierrors.IsConflict(err) || act.Gone(err) {
		return fmt.Errorf("status of %s: %w", o.Ref(), act.ErrStale)
	}
	return fmt.Errorf("status of %s: %w", o.Ref(), err)
}

// replacement is the JSON patch (RFC 6902) that sets the whole status. Replacing resourceVersion by
// the observed one makes it a precondition: the API server answers 409 where it differs.
func replacement(o *object.Object, status map[string]any) []map[string]any {
	return []map[string]any{
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.ResourceVersion()},
		{"op": "add", "path": "/status", "value": status},
	}
}

// Same reports whether o's status equals status. An absent status equals nothing: an empty one is
// written.
func Same(o *object.Object, status map[string]any) (bool, error) {
	if raw, there := o.Field("status"); !there || string(raw) == "null" {
		return false, nil
	}
	present, err := StatusOf(o)
	if err != nil {
		return false, err
	}
	return merge.Equal(present, status), nil
}

// StatusOf decodes an object's status; an absent or null one is empty.
func StatusOf(o *object.Object) (map[string]any, error) {
	raw, ok := o.Field("status")
	if !ok || string(raw) == "null" {
		return map[string]any{}, nil
	}
	status, err := object.DecodeMap(raw)
	if err != nil {
		return nil, fmt.Errorf("status of %s: %w", o.Ref(), err)
	}
	return status, nil
}
