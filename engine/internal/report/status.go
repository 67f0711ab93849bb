package report

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// StatusWriter writes statuses (package act).
type StatusWriter interface {
	// ReplaceStatus makes status the whole status of an object, and returns the server's answer.
	ReplaceStatus(
		ctx context.Context, r object.Resource, o *object.Object, status map[string]any,
	) (*object.Object, error)
}

// Status writes statuses that differ from the present ones.
type Status struct{ writer StatusWriter }

// NewStatus returns a Status that writes through writer.
func NewStatus(writer StatusWriter) *Status { return &Status{writer: writer} }

// Replace makes status, a JSON object, the whole status of o. It returns the server's answer, or
// nil if o has that status already.
func (s *Status) Replace(
	ctx context.Context, r object.Resource, o *object.Object, status map[string]any,
) (*object.Object, error) {
	same, err := Same(o, status)
	if err != nil || same {
		return nil, err
	}
	return s.writer.ReplaceStatus(ctx, r, o, status)
}

// Same reports whether o's status equals status. An absent status equals none, so that an empty one
// is written.
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

// StatusOf decodes an object's status. It is empty if the object has none, or null.
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
