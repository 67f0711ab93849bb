package server

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// clearEnvironment makes the test independent of the machine's OTEL_* variables.
func clearEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{
		"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
		"OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
	} {
		t.Setenv(name, "")
	}
}

func TestTracingEnabled(t *testing.T) {
	for _, test := range []struct {
		name    string
		tracing Tracing
		env     map[string]string
		want    bool
	}{
		{"nothing said", Tracing{}, nil, false},
		{"the flag", Tracing{Endpoint: "http://c:4318"}, nil, true},
		{"the exporter", Tracing{}, map[string]string{"OTEL_TRACES_EXPORTER": "console"}, true},
		{"no exporter wins over its address", Tracing{},
			map[string]string{"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, false},
		{"the collector of all signals", Tracing{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, true},
		{"the collector of traces", Tracing{}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c"}, true},
		{"disabled wins over all", Tracing{Endpoint: "http://c:4318"}, map[string]string{"OTEL_SDK_DISABLED": "true"}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			clearEnvironment(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			if got := test.tracing.enabled(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestExporter(t *testing.T) {
	for _, test := range []struct {
		name, endpoint string
		env            map[string]string
		want           string // the error
	}{
		{"OTLP", "", map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, ""},
		{"OTLP over gRPC", "", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ""},
		{"the flag, over gRPC", "http://c:4317", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc"}, ""},
		{"the flag wins", "http://c:4318", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, ""},
		{"the console", "", map[string]string{"OTEL_TRACES_EXPORTER": "console"}, ""},
		{"an unknown exporter", "", map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"},
			`OTEL_TRACES_EXPORTER: got "zipkin", expected otlp, console or none`},
		{"an unknown protocol", "", map[string]string{"OTEL_EXPORTER_OTLP_PROTOCOL": "udp"},
			`OTEL_EXPORTER_OTLP_PROTOCOL: got "udp", expected grpc or http/protobuf`},
	} {
		t.Run(test.name, func(t *testing.T) {
			clearEnvironment(t)
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			exporter, err := Tracing{Endpoint: test.endpoint}.exporter(t.Context())
			if test.want != "" {
				if err == nil || err.Error() != test.want {
					t.Errorf("got the error %v, want %s", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if err := exporter.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestSampleRatio(t *testing.T) {
	for _, test := range []struct {
		name         string
		flag         float64
		sampler, arg string
		want         float64
		fails        bool
	}{
		{"nothing said", -1, "", "", 1, false},
		{"the flag wins", .25, "always_off", "", .25, false},
		{"always off", -1, "parentbased_always_off", "", 0, false},
		{"a ratio", -1, "parentbased_traceidratio", "0.5", .5, false},
		{"a ratio that is none", -1, "traceidratio", "half", 0, true},
		{"an unknown sampler", -1, "jaeger_remote", "", 0, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			clearEnvironment(t)
			t.Setenv("OTEL_TRACES_SAMPLER", test.sampler)
			t.Setenv("OTEL_TRACES_SAMPLER_ARG", test.arg)
			got, err := Tracing{SampleRatio: test.flag}.ratio()
			if got != test.want || (err != nil) != test.fails {
				t.Errorf("got %v, %v; want %v", got, err, test.want)
			}
		})
	}
}

func TestTracingOffMakesNoSpans(t *testing.T) {
	clearEnvironment(t)
	off, err := newTracing(context.Background(), Tracing{SampleRatio: -1}, "v1", logr.Discard(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	_, span := off.provider.Tracer("test").Start(context.Background(), "sync")
	if span.IsRecording() || off.sampled(trace.TraceID{1}) {
		t.Error("a span is recorded, want none")
	}
}

// TestTracingExports sends a span to a collector at the flag's address.
func TestTracingExports(t *testing.T) {
	clearEnvironment(t)
	paths := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths <- r.URL.Path }))
	defer collector.Close()
	on, err := newTracing(context.Background(), Tracing{Endpoint: collector.URL, SampleRatio: 1}, "v1",
		logr.Discard(), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	_, span := on.provider.Tracer("test").Start(context.Background(), "sync")
	span.End()
	if err := on.stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := <-paths; got != "/v1/traces" {
		t.Errorf("sent to %s, want /v1/traces", got)
	}
}

// blocked is a collector that takes nothing until it is let go.
type blocked struct{ release chan struct{} }

func (b blocked) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error {
	<-b.release
	return errors.New("dead")
}

func (blocked) Shutdown(context.Context) error { return nil }

// TestDeadCollector ends more spans than the buffer holds while the collector hangs: no End waits,
// and every span is counted.
func TestDeadCollector(t *testing.T) {
	t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "4")
	t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "2")
	collector := blocked{make(chan struct{})}
	buffer := newSpanBuffer(collector, prometheus.NewRegistry())
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(buffer))
	for range 10 {
		_, span := provider.Tracer("test").Start(context.Background(), "sync")
		span.End()
	}
	if got := testutil.ToFloat64(buffer.spans.WithLabelValues("dropped")); got != 6 {
		t.Errorf("%v spans dropped, want 6", got)
	}
	close(collector.release)
	_ = provider.Shutdown(context.Background()) // reports the collector's error, which is the point
	if got := testutil.ToFloat64(buffer.spans.WithLabelValues("failed")); got != 4 {
		t.Errorf("%v spans failed, want 4", got)
	}
}
