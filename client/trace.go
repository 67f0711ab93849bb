package client

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/change"
)

// Change is the trace of the latest change of an object: of its generation, which the syncs of a controller whose parent it is
// belong to.
type Change struct {
	TraceID    string
	Kind       string
	Namespace  string
	Name       string
	Generation int64
}

// Trace returns the trace of the latest change of an object. The trace exists if the object is the parent of a controller, and if
// the controller exports traces and has sampled this one.
func Trace(ctx context.Context, t Target) (Change, error) {
	c, err := connect(t)
	if err != nil {
		return Change{}, err
	}
	o, err := c.get(ctx, t.Resource, t.Name)
	if err != nil {
		return Change{}, err
	}
	system, err := c.get(ctx, "namespaces", "kube-system")
	if err != nil {
		return Change{}, fmt.Errorf("the cluster's UID, which trace ids derive from: %w", err)
	}
	return Change{
		TraceID: change.Of(system.UID, o.UID, o.Generation).Trace.String(),
		Kind:    o.Kind, Namespace: o.Namespace, Name: o.Name, Generation: o.Generation,
	}, nil
}
