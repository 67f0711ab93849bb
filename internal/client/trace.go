package client

import (
	"context"

	"github.com/hookloop/hookloop/internal/engine/change"
)

// Trace returns the id of the trace of an object's latest change, that is, of its generation. The
// syncs of all controllers of this parent belong to the trace. It exists if such a controller
// exports traces and has sampled this one.
func Trace(ctx context.Context, t Target) (id string, err error) {
	c, err := connect(t)
	if err != nil {
		return "", err
	}
	o, err := c.get(ctx, t.Resource, t.Name)
	if err != nil {
		return "", err
	}
	cluster, err := c.uid(ctx)
	if err != nil {
		return "", err
	}
	return change.Of(cluster, o.UID, o.Generation).Trace.String(), nil
}
