package middleware

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/hook/wraptest"
	"github.com/hookloop/hookloop/internal/panics"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// statusError is an error of a transport with its protocol's status.
type statusError struct{}

func (statusError) Error() string { return "status 503" }
func (statusError) Code() string  { return "503" }

// wrap opens a hook that calls f, with all wrappers.
func wrap(t *testing.T, s Config, f hook.Func) hook.Hook {
	t.Helper()
	return open(t, s, func(hook.Config) (*hook.Opened, error) {
		return &hook.Opened{Hook: f, Address: "http://hello/sync"}, nil
	})
}

// open opens a hook with a transport, with all wrappers.
func open(t *testing.T, s Config, opener hook.Opener) *hook.Opened {
	t.Helper()
	opened, err := tryOpen(s, opener)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

func tryOpen(s Config, opener hook.Opener) (*hook.Opened, error) {
	return Openers(hook.Openers{"webhook": opener}, s)["webhook"](
		hook.Config{ControllerKind: "CompositeController", ControllerName: "hello", Op: hook.Sync, Version: "v2"})
}

// outcome is a possible result of a call.
type outcome struct {
	f    hook.Func
	kind string // error.type of the span
	code string // label of the metric
}

// context returns the caller's context. The caller has given up if that is the outcome.
func (o outcome) context(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	if o.kind == "Canceled" {
		cancel()
	}
	return ctx
}

var outcomes = map[string]outcome{
	"answer": {func(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil }, "", "200"},
	"status": {func(context.Context, *hook.Question) (*hook.Answer, error) {
		return nil, &hook.Error{Kind: hook.Failed, Hook: "sync x", Err: statusError{}}
	}, "HookFailed", "503"},
	"no connection": {func(context.Context, *hook.Question) (*hook.Answer, error) {
		return nil, &hook.Error{Kind: hook.Unreachable, Hook: "sync x", Err: errors.New("refused")}
	}, "HookUnreachable", "HookUnreachable"},
	"panic": {
		func(context.Context, *hook.Question) (*hook.Answer, error) { panic("boom") },
		"HookFailed",
		"HookFailed",
	},
	"cancelled": {
		func(context.Context, *hook.Question) (*hook.Answer, error) { return nil, context.Canceled },
		"Canceled",
		"Canceled",
	},
}

func TestEveryCallIsASpan(t *testing.T) {
	for name, o := range outcomes {
		t.Run(name, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
			inside := trace.SpanContext{}
			h := wrap(t, Config{Tracer: tracer}, func(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
				inside = trace.SpanContextFromContext(ctx)
				return o.f(ctx, q)
			})
			_, err := h.Ask(o.context(t), &hook.Question{Op: hook.Sync, Changed: hook.ChangedChild})
			ended := spans.Ended()
			if len(ended) != 1 || ended[0].Name() != "ask Sync" || ended[0].SpanKind() != trace.SpanKindClient {
				t.Fatalf("got spans %v, want one client span ask", ended)
			}
			if ended[0].SpanContext().SpanID() != inside.SpanID() {
				t.Error("the transport is not inside the span")
			}
			attributes := attribute.NewSet(ended[0].Attributes()...)
			kind, _ := attributes.Value("error.type")
			if diff := cmp.Diff(o.kind, kind.AsString()); diff != "" {
				t.Errorf("error.type (-want +got):\n%s", diff)
			}
			if (ended[0].Status().Code == codes.Error) != (err != nil) {
				t.Errorf("got status %v for error %v", ended[0].Status(), err)
			}
			if changed, _ := attributes.Value("hookloop.hook.changed"); changed.AsString() != "child" {
				t.Errorf("got the changed input %q", changed.AsString())
			}
			if address, _ := attributes.Value("hookloop.hook.address"); address.AsString() != "http://hello/sync" {
				t.Errorf("got address %q", address.AsString())
			}
		})
	}
}

func TestEveryCallIsCounted(t *testing.T) {
	for name, o := range outcomes {
		t.Run(name, func(t *testing.T) {
			registry := prometheus.NewPedanticRegistry()
			h := wrap(t, Config{Metrics: NewMetrics(registry)}, o.f)
			_, _ = h.Ask(o.context(t), &hook.Question{Op: hook.Sync, Changed: hook.ChangedChild})
			labels := `controller_name="hello",controller_type="CompositeController"`
			want := `# HELP hookloop_hook_calls_total Calls of hooks, by controller, operation and the input that had ` +
				`changed since the previous question.
# TYPE hookloop_hook_calls_total counter
hookloop_hook_calls_total{controller="composite/hello",input="child",operation="sync"} 1
# HELP metacontroller_sync_in_flight_requests Calls of sync hooks under way.
# TYPE metacontroller_sync_in_flight_requests gauge
metacontroller_sync_in_flight_requests{` + labels + `,url="http://hello/sync"} 0
# HELP metacontroller_sync_requests_total Calls of sync hooks by their result.
# TYPE metacontroller_sync_requests_total counter
metacontroller_sync_requests_total{code="` + o.code + `",` + labels + `,method="post",url="http://hello/sync"} 1
`
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want),
				"hookloop_hook_calls_total", "metacontroller_sync_in_flight_requests", "metacontroller_sync_requests_total",
			); err != nil {
				t.Error(err)
			}
			if n, err := testutil.GatherAndCount(registry,
				"metacontroller_sync_request_duration_histogram_seconds"); n != 1 ||
				err != nil {
				t.Errorf("got %d histograms, %v, want 1", n, err)
			}
		})
	}
}

// TestPanicInATransport is a fault of the hook, not of the sync that calls it.
func TestPanicInATransport(t *testing.T) {
	_, err := wrap(t, Config{}, outcomes["panic"].f).Ask(t.Context(), &hook.Question{Op: hook.Sync})
	var failed *hook.Error
	var panicked *panics.Error
	if !errors.As(err, &failed) || failed.Kind != hook.Failed || errors.As(err, &panicked) ||
		!strings.HasSuffix(err.Error(), "panic: boom") {
		t.Errorf("got %v, want a *hook.Error of kind %s that has the panic's text only", err, hook.Failed)
	}
}

func TestAnErrorOfTheOpenerIsPassedOn(t *testing.T) {
	broken := errors.New("url: is missing")
	openers := Openers(hook.Openers{"webhook": func(hook.Config) (*hook.Opened, error) { return nil, broken }},
		Config{})
	if opened, err := openers["webhook"](hook.Config{}); opened != nil || !errors.Is(err, broken) {
		t.Errorf("got %v, %v, want %v", opened, err, broken)
	}
}

func TestTheWrappersPassOnEveryField(t *testing.T) {
	opened := open(t, Config{}, func(hook.Config) (*hook.Opened, error) { return wraptest.Full(), nil })
	if missing := wraptest.Missing(opened); len(missing) > 0 || opened.Named != "shop" {
		t.Errorf("the wrapped hook does not have %q, and has the name %q", missing, opened.Named)
	}
}
