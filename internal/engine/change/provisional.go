package change

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// NoOp marks a root span whose work wrote nothing and did not fail. A provisional trace with such a
// root is not exported.
var NoOp = attribute.Bool("hookloop.noop", true)

// Effective takes NoOp back from the span of ctx: the work under it has had an effect.
func Effective(ctx context.Context) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Bool(string(NoOp.Key), false))
}

type provisionalKey struct{}

// Provisional makes the trace of the next root span that is started under the returned context
// provisional: when the root span ends, its attributes decide whether the trace is exported (NoOp).
func Provisional(ctx context.Context) context.Context {
	return context.WithValue(ctx, provisionalKey{}, true)
}

// Detached returns ctx without its trace: for work that goes on after the span of ctx has ended.
func Detached(ctx context.Context) context.Context {
	return context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), provisionalKey{}, false)
}

// IsProvisional reports whether ctx belongs to a provisional trace.
func IsProvisional(ctx context.Context) bool {
	provisional, _ := ctx.Value(provisionalKey{}).(bool)
	return provisional
}

// Propagator is W3C trace context. In a provisional trace it clears the sampled flag: a hook that
// exported its span of a trace which is dropped later would leave a trace of that one span.
type Propagator struct{ propagation.TraceContext }

// Inject writes the trace context of ctx into carrier.
func (p Propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if IsProvisional(ctx) {
		sc := trace.SpanContextFromContext(ctx)
		ctx = trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(sc.TraceFlags().WithSampled(false)))
	}
	p.TraceContext.Inject(ctx, carrier)
}
