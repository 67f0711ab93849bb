package act

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// counts are the counted results.
type counts []string

func (c *counts) Wrote(_, result string) { *c = append(*c, result) }

// TestFailedStatus: a conflict, and the object's absence, mean a stale view; every other failure is
// a separate error.
func TestFailedStatus(t *testing.T) {
	pages := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "P"}, Plural: "pages", HasStatus: true}
	status := func(code, reason string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","code":` + code + `,"reason":"` + reason + `"}`
	}
	tests := []struct {
		name   string
		code   int
		body   string
		stale  bool
		result string
	}{
		{"409", http.StatusConflict, status("409", "Conflict"), true, "stale"},
		{"404", http.StatusNotFound, status("404", "NotFound"), true, "stale"},
		{"404 of a proxy", http.StatusNotFound, "page not found", false, "NotFound"},
		{"403", http.StatusForbidden, status("403", "Forbidden"), false, "Forbidden"},
		{"429", http.StatusTooManyRequests, status("429", "TooManyRequests"), false, "TooManyRequests"},
		{"500", http.StatusInternalServerError, status("500", "InternalError"), false, "InternalError"},
		{"504", http.StatusGatewayTimeout, status("504", "Timeout"), false, "Timeout"},
		{"a cut connection", 0, "", false, "error"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.code == 0 {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(test.code)
				_, _ = w.Write([]byte(test.body)) // a closed connection is not the test's fault
			}))
			defer server.Close()
			heard := &counts{}
			tracer := noop.NewTracerProvider().Tracer("")
			writer, err := NewWriter(Config{
				Config: &rest.Config{Host: server.URL, QPS: -1}, Tracer: tracer, Meter: heard, Clock: clock.RealClock{},
			})
			if err != nil {
				t.Fatal(err)
			}
			written, err := writer.ReplaceStatus(t.Context(), pages, observedPage(t), map[string]any{"a": "b"})
			if err == nil || written != nil || errors.Is(err, ErrStale) != test.stale {
				t.Errorf("ReplaceStatus = %v, %v", written, err)
			}
			if len(*heard) != 1 || (*heard)[0] != test.result {
				t.Errorf("counted were %v, want %s", *heard, test.result)
			}
		})
	}
}

func observedPage(t *testing.T) *object.Object {
	t.Helper()
	o, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"P","metadata":{"name":"p","resourceVersion":"7"}}`))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestReplacementHasAPrecondition(t *testing.T) {
	want := []any{
		map[string]any{"op": "replace", "path": "/metadata/resourceVersion", "value": "7"},
		map[string]any{"op": "add", "path": "/status", "value": map[string]any{"a": int64(1)}},
	}
	if diff := cmp.Diff(want, replacement(observedPage(t), map[string]any{"a": int64(1)})); diff != "" {
		t.Errorf("patch (-want +got):\n%s", diff)
	}
}
