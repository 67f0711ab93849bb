package server

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"golang.org/x/time/rate"
)

// tracing holds the tracer of this process, and decides which changes to trace.
type tracing struct {
	provider trace.TracerProvider
	// sampled decides by the trace id alone, so that all syncs of a change agree on every replica.
	sampled func(trace.TraceID) bool
	// waiting returns the number of spans that wait for their export.
	waiting func() int
	// stop exports the remaining spans. It does nothing if tracing is off.
	stop func(context.Context) error
}

// tracingOff costs nothing per span.
var tracingOff = tracing{
	provider: noop.NewTracerProvider(),
	sampled:  func(trace.TraceID) bool { return false },
	waiting:  func() int { return 0 },
	stop:     func(context.Context) error { return nil },
}

// propagators carry the context of a trace to hooks and to the API server (W3C).
var propagators = propagation.NewCompositeTextMapPropagator(change.Propagator{}, propagation.Baggage{})

// newTracing sets up tracing for the whole process. It stays off unless c or an OTEL_* variable
// asks for it. Spans wait in a bounded buffer: if the collector is slow or down, spans are dropped
// and counted in a metric, but a sync never waits for it.
func newTracing(
	ctx context.Context,
	c Tracing,
	version string,
	log logr.Logger,
	metrics prometheus.Registerer,
) (tracing, error) {
	otel.SetTextMapPropagator(propagators)
	otel.SetLogger(log.WithName("otel"))
	otel.SetErrorHandler(rateLimited(log))
	if !c.enabled() {
		return tracingOff, nil
	}
	exporter, err := c.exporter(ctx)
	if err != nil {
		return tracing{}, fmt.Errorf("set up tracing: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "hookloop"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		return tracing{}, fmt.Errorf("set up tracing: describe this process: %w", err)
	}
	ratio, err := c.ratio()
	if err != nil {
		return tracing{}, fmt.Errorf("set up tracing: %w", err)
	}
	sampler := sdktrace.TraceIDRatioBased(ratio)
	spans := c.processor(exporter, metrics)
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithSampler(sdktrace.ParentBased(sampler)),
		sdktrace.WithIDGenerator(change.IDGenerator{}),
		sdktrace.WithRawSpanLimits(spanLimits()),
		sdktrace.WithSpanProcessor(spans))
	otel.SetTracerProvider(provider)
	return tracing{
		provider: provider, stop: provider.Shutdown, waiting: spans.waiting,
		sampled: func(id trace.TraceID) bool {
			return sampler.ShouldSample(sdktrace.SamplingParameters{TraceID: id}).Decision == sdktrace.RecordAndSample
		},
	}, nil
}

// spanProcessor processes the spans of the process.
type spanProcessor interface {
	sdktrace.SpanProcessor
	// waiting returns the number of spans that wait for their export.
	waiting() int
}

// processor returns a spanProcessor that buffers spans for the exporter. It drops the spans of
// syncs that changed nothing, unless c asks to keep them.
func (c Tracing) processor(exporter sdktrace.SpanExporter, metrics prometheus.Registerer) spanProcessor {
	buffer := newSpanBuffer(exporter, metrics)
	if c.NoOpSyncs {
		return buffer
	}
	return newSpanFilter(buffer)
}

// maxAttribute limits the text of one attribute, in bytes.
const maxAttribute = 4 << 10

func spanLimits() sdktrace.SpanLimits {
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 || limits.AttributeValueLengthLimit > maxAttribute {
		limits.AttributeValueLengthLimit = maxAttribute
	}
	return limits
}

// enabled follows the OpenTelemetry environment variables, with one difference: if none is set,
// tracing is off and does not use a collector on localhost.
func (c Tracing) enabled() bool {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") {
		return false
	}
	if c.Endpoint != "" {
		return true
	}
	if exporter := os.Getenv("OTEL_TRACES_EXPORTER"); exporter != "" {
		return exporter != "none"
	}
	return cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}

// exporter makes the exporter that the flag or the OTEL_* variables ask for.
func (c Tracing) exporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if c.Endpoint == "" {
		switch name := os.Getenv("OTEL_TRACES_EXPORTER"); name {
		case "", "otlp":
		case "console":
			return stdouttrace.New()
		default:
			return nil, fmt.Errorf("OTEL_TRACES_EXPORTER: got %q, expected otlp, console or none", name)
		}
	}
	protocol := cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), os.Getenv("OTEL_EXPORTER_OTLP_PROTOCOL"))
	switch protocol {
	case "grpc":
		return c.overGRPC(ctx)
	case "", "http/protobuf":
		return c.overHTTP(ctx)
	default:
		return nil, fmt.Errorf("OTEL_EXPORTER_OTLP_PROTOCOL: got %q, expected grpc or http/protobuf", protocol)
	}
}

func (c Tracing) overGRPC(ctx context.Context) (sdktrace.SpanExporter, error) {
	if c.Endpoint == "" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(c.Endpoint))
}

func (c Tracing) overHTTP(ctx context.Context) (sdktrace.SpanExporter, error) {
	if c.Endpoint == "" {
		return otlptracehttp.New(ctx)
	}
	u, err := url.Parse(c.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("--tracing-endpoint: %w", err)
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = "/v1/traces"
	}
	return otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()))
}

// ratio returns the share of changes to trace, from 0 to 1. The flag comes first, then the standard
// sampler variables; the default is to trace all.
func (c Tracing) ratio() (float64, error) {
	if c.SampleRatio >= 0 {
		return c.SampleRatio, nil
	}
	switch sampler := os.Getenv("OTEL_TRACES_SAMPLER"); strings.TrimPrefix(sampler, "parentbased_") {
	case "", "always_on":
		return 1, nil
	case "always_off":
		return 0, nil
	case "traceidratio":
		ratio, err := strconv.ParseFloat(cmp.Or(os.Getenv("OTEL_TRACES_SAMPLER_ARG"), "1"), 64)
		if err != nil || ratio < 0 || ratio > 1 {
			return 0, fmt.Errorf("OTEL_TRACES_SAMPLER_ARG: got %q, expected a number from 0 to 1",
				os.Getenv("OTEL_TRACES_SAMPLER_ARG"))
		}
		return ratio, nil
	default:
		return 0, fmt.Errorf(
			"OTEL_TRACES_SAMPLER: got %q, expected always_on, always_off or traceidratio, or one of them after parentbased_",
			sampler)
	}
}

// rateLimited logs at most one tracing failure a minute, and how many it has left out since.
func rateLimited(log logr.Logger) otel.ErrorHandler {
	var mu sync.Mutex // guards skipped
	skipped := 0
	limit := rate.NewLimiter(rate.Every(time.Minute), 1)
	return otel.ErrorHandlerFunc(func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if !limit.Allow() {
			skipped++
			return
		}
		log.Info("traces are not exported", "error", err.Error(), "skipped", skipped)
		skipped = 0
	})
}
