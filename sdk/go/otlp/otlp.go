// Package otlp exports the spans of a hook to an OpenTelemetry collector. Call [Setup] first in
// main, unless your program already configures OpenTelemetry:
//
//	func main() {
//		if err := otlp.Setup(context.Background()); err != nil {
//			log.Fatal(err)
//		}
//		hook.Main(hook.Composite{Sync: sync})
//	}
//
// Package hook creates a span for each call with OpenTelemetry's global provider, which Setup
// replaces. Exporters add several megabytes to a program, so they are not part of package hook.
package otlp

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Setup sets OpenTelemetry's global TracerProvider to one that exports spans, as the OTEL_*
// environment variables say. If neither OTEL_TRACES_EXPORTER nor the endpoint of an OTLP collector
// is set, it does nothing. Call it once, before hook.Main, hook.Serve or hook.Attach; these
// export the last spans when they end.
//
// OTEL_TRACES_EXPORTER should be otlp (the default), console or none. OTEL_EXPORTER_OTLP_PROTOCOL
// should be http/protobuf (the default) or grpc. OTEL_SERVICE_NAME names the service and defaults
// to the name of the program's file. Setup returns an error if a variable has an invalid value.
func Setup(ctx context.Context) error {
	name := exporterName()
	if name == "none" {
		return nil
	}
	exporter, err := newExporter(ctx, name)
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", filepath.Base(os.Args[0]))),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return fmt.Errorf("tracing: %w", err)
	}
	otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithResource(described), sdktrace.WithBatcher(exporter)))
	return nil
}

// exporterName returns which exporter to use. The OpenTelemetry specification defaults to otlp; we
// default to none, so that a program without a collector does not try to reach one on localhost.
func exporterName() string {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return "none"
	}
	if name := os.Getenv("OTEL_TRACES_EXPORTER"); name != "" {
		return name
	}
	if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != "" {
		return "otlp"
	}
	return "none"
}

func newExporter(ctx context.Context, name string) (sdktrace.SpanExporter, error) {
	switch name {
	case "console":
		return stdouttrace.New()
	case "otlp":
	default:
		return nil, fmt.Errorf("OTEL_TRACES_EXPORTER is %q, expected otlp, console or none", name)
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	switch protocol {
	case "grpc":
		return otlptracegrpc.New(ctx)
	case "", "http/protobuf":
		return otlptracehttp.New(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL is %q, expected grpc or http/protobuf", protocol)
	}
}
