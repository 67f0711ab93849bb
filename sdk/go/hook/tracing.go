package hook

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// propagators read the engine's trace context (W3C).
var propagators = propagation.NewCompositeTextMapPropagator(propagation.TraceContext{}, propagation.Baggage{})

// flushTimeout bounds the export of the last spans: a dead collector does not hold up a stop.
const flushTimeout = 3 * time.Second

// tracing is the provider of spans and what ends it.
type tracing struct {
	provider trace.TracerProvider
	stop     func() error
}

// startTracing follows the OTEL_* environment, except that nothing at all means off and not a
// collector on localhost. The service's name is OTEL_SERVICE_NAME's, else the program's. Off, the
// process's own provider is used, which does nothing unless the program has set one.
func startTracing(ctx context.Context) (tracing, error) {
	otel.SetTextMapPropagator(propagators)
	if !tracingEnabled() {
		return tracing{provider: otel.GetTracerProvider(), stop: func() error { return nil }}, nil
	}
	exporter, err := autoexport.NewSpanExporter(ctx)
	if err != nil {
		return tracing{provider: noop.NewTracerProvider()}, err
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", filepath.Base(os.Args[0]))),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return tracing{provider: noop.NewTracerProvider()}, err
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithBatcher(exporter))
	otel.SetTracerProvider(provider)
	return tracing{provider: provider, stop: func() error {
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		return provider.Shutdown(ctx)
	}}, nil
}

// flush exports the last spans.
func (t tracing) flush(log *slog.Logger) {
	if err := t.stop(); err != nil {
		log.Warn("the last spans were not exported", "error", err)
	}
}

func tracingEnabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}
