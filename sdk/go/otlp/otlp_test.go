package otlp_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/sdk/go/otlp"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestServeExportsTheSpansOfCalls exports the span of one call when the server ends.
func TestServeExportsTheSpansOfCalls(t *testing.T) {
	exported := make(chan []byte, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the spans: %v", err)
		}
		exported <- body
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	t.Setenv("OTEL_SERVICE_NAME", "hello-hook")
	setup(t)
	serveOneCall(t)
	body := <-exported
	for _, want := range []string{"hello-hook", "hookloop.composite.v1.CompositeHookService/Sync"} {
		if !bytes.Contains(body, []byte(want)) {
			t.Errorf("the exported spans do not mention %q: %q", want, body)
		}
	}
}

// setup calls Setup, and restores the global provider at the end of the test.
func setup(t *testing.T) {
	t.Helper()
	before := otel.GetTracerProvider()
	if err := otlp.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if set, ok := otel.GetTracerProvider().(*sdktrace.TracerProvider); ok {
			if err := set.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
		}
		otel.SetTracerProvider(before)
	})
}

// serveOneCall serves a hook until it has answered one call.
func serveOneCall(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listening := make(chan net.Addr, 1)
	served := make(chan error, 1)
	o := hook.ServeOptions{Listen: "127.0.0.1:0", Listening: func(at net.Addr) { listening <- at }}
	sync := func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil }
	go func() { served <- hook.Serve(ctx, o, hook.Composite{Sync: sync}) }()
	connection, err := grpc.NewClient((<-listening).String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close() //nolint:errcheck // no call is running
	parent := &hookv1.ObservedObject{ApiVersion: "example.com/v1", Kind: "Greeting", Name: "hi", Body: []byte("{}")}
	request := &compositev1.SyncRequest{Controller: parent, Parent: parent}
	if _, err := compositev1.NewCompositeHookServiceClient(connection).Sync(ctx, request); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
}

func TestTheEnvironmentSelectsTheExporter(t *testing.T) {
	for name, c := range map[string]struct {
		environment map[string]string
		set, fails  bool
	}{
		"nothing": {},
		"an endpoint": {environment: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1"},
			set: true},
		"the console": {environment: map[string]string{"OTEL_TRACES_EXPORTER": "console"}, set: true},
		"none":        {environment: map[string]string{"OTEL_TRACES_EXPORTER": "none"}},
		"OTLP over gRPC": {environment: map[string]string{"OTEL_TRACES_EXPORTER": "otlp",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, set: true},
		"disabled":            {environment: map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}},
		"an unknown exporter": {environment: map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, fails: true},
		"an unknown protocol": {environment: map[string]string{"OTEL_TRACES_EXPORTER": "otlp",
			"OTEL_EXPORTER_OTLP_PROTOCOL": "udp"}, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			if c.fails {
				if err := otlp.Setup(t.Context()); err == nil {
					t.Error("no error")
				}
				return
			}
			setup(t)
			if _, set := otel.GetTracerProvider().(*sdktrace.TracerProvider); set != c.set {
				t.Errorf("a provider is set: %v, want %v", set, c.set)
			}
		})
	}
}

// A hook exports its spans if the environment names a collector.
func ExampleSetup() {
	sync := func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return &hook.SyncResponse{}, nil }
	main := func() {
		if err := otlp.Setup(context.Background()); err != nil {
			panic(err)
		}
		hook.Main(hook.Composite{Sync: sync})
	}
	_ = main // it serves until the process is asked to end
	// Output:
}
