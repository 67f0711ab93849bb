package change

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// NoOp marks the root span of work that wrote nothing and did not fail. A provisional trace with
// such a root is not exported.
var NoOp = attribute.Bool("hookloop.noop", true)

// Effective removes NoOp from the span of ctx, because the work under it had an effect.
func Effective(ctx context.Context) {
	trace.SpanFromContext(ctx).SetAttributes(attribute.Bool(string(NoOp.Key), false))
}

type provisionalKey struct{}

// Provisional returns a context for a provisional trace: the attributes of the root span at its end
// decide whether the trace is exported (NoOp).
func Provisional(ctx context.Context) context.Context {
	return context.WithValue(ctx, provisionalKey{}, true)
}

// Detached returns ctx without its trace, for work that continues after the span of ctx has ended.
func Detached(ctx context.Context) context.Context {
	return context.WithValue(trace.ContextWithSpanContext(ctx, trace.SpanContext{}), provisionalKey{}, false)
}

// IsProvisional reports whether ctx belongs to a provisional trace.
func IsProvisional(ctx context.Context) bool {
	provisional, _ := ctx.Value(provisionalKey{}).(bool)
	return provisional
}

// Propagator is W3C trace context. In a provisional trace it clears the sampled flag. Otherwise a
// hook could export its span of a trace that is dropped later.
type Propagator struct{ propagation.TraceContext }

// Inject writes the trace context of ctx into carrier.
func (p Propagator) Inject(ctx context.Context, carrier propagation.TextMapCarrier) {
	if IsProvisional(ctx) {
		sc := trace.SpanContextFromContext(ctx)
		ctx = trace.ContextWithSpanContext(ctx, sc.WithTraceFlags(sc.TraceFlags().WithSampled(false)))
	}
	p.TraceContext.Inject(ctx, carrier)
}
