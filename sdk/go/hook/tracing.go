package hook

import (
	"context"
	"log/slog"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// propagators read the engine's trace context (W3C).
var propagators = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// flushTimeout limits the final export of spans, so that an unreachable collector does not delay
// the exit.
const flushTimeout = 3 * time.Second

// startTracing returns OpenTelemetry's global provider, and sets the propagators.
func startTracing() trace.TracerProvider {
	otel.SetTextMapPropagator(propagators)
	return otel.GetTracerProvider()
}

// flush exports the remaining spans if the global provider is able to.
func flush(log *slog.Logger) {
	exporting, ok := otel.GetTracerProvider().(interface{ ForceFlush(context.Context) error })
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := exporting.ForceFlush(ctx); err != nil {
		log.Warn("the last spans were not exported", "error", err)
	}
}
