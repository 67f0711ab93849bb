// Package share divides what all controllers of the process have in common, so that none of them
// uses it up: requests to the API server (Limiter), and the number of syncs that wait for slow
// hooks (Waits).
//
// It knows no controller beyond the name of its flow, which travels in the context. A Limiter
// serves every client of the API server; package loop uses Waits. All values are safe for
// concurrent use. Tests run on a fake clock.
package share

import "context"

type flowKey struct{}

// WithFlow names the flow that work under the context belongs to: the controller "composite/hello".
func WithFlow(ctx context.Context, name string) context.Context {
	return context.WithValue(ctx, flowKey{}, name)
}

// Flow returns the name of the flow; empty for the engine's own work.
func Flow(ctx context.Context) string {
	name, _ := ctx.Value(flowKey{}).(string)
	return name
}
