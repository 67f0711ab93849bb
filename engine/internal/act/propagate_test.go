package act

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

type unmetered struct{}

func (*unmetered) Wrote(string, string) {}

// TestRequestsCarryTheTraceContext: the API server gets the span of the request's caller as its
// parent, and no header without a span.
func TestRequestsCarryTheTraceContext(t *testing.T) {
	var got []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Traceparent"))
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`)); err != nil {
			t.Error(err)
		}
	}))
	defer web.Close()
	w, err := NewWriter(Config{
		Config: &rest.Config{Host: web.URL}, Tracer: noop.NewTracerProvider().Tracer(""), Clock: clock.RealClock{},
		Meter: &unmetered{},
	})
	if err != nil {
		t.Fatal(err)
	}
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	resource := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps"}
	a := object.Ref{GVK: resource.GVK, Name: "a"}
	for _, ctx := range []func() error{
		func() error {
			_, err := w.Get(trace.ContextWithSpanContext(t.Context(), span), resource, a)
			return err
		},
		func() error { _, err := w.Get(t.Context(), resource, a); return err },
	} {
		if err := ctx(); err != nil {
			t.Fatal(err)
		}
	}
	if want := "00-01000000000000000000000000000000-0200000000000000-01"; len(got) != 2 || got[0] != want || got[1] != "" {
		t.Errorf("traceparent is %q, want %q, then none", got, want)
	}
}
