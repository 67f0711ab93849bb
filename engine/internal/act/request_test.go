package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/metrics"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

// twoWays returns the functions that send a request: the client's own, and client-go alone.
func twoWays(t testing.TB, config *rest.Config) (ours, clientGo func(context.Context, apiRequest) ([]byte, error)) {
	t.Helper()
	config = dynamic.ConfigFor(config)
	config.GroupVersion = nil
	c, err := newClient(config)
	if err != nil {
		t.Fatal(err)
	}
	return c.do, func(ctx context.Context, q apiRequest) ([]byte, error) {
		return c.perform(ctx, q, c.rest.Verb(q.method))
	}
}

// TestRequestsAreClientGos: the API server gets the request that client-go would send.
func TestRequestsAreClientGos(t *testing.T) {
	type seen struct {
		Line, Body string
		Length     int64
		Header     http.Header
	}
	var got []seen
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, seen{r.Method + " " + r.RequestURI, string(body), r.ContentLength, r.Header})
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Page"}`)) // a closed connection is not the test's fault
	}))
	defer web.Close()
	span := trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	})
	body := []byte(`{"a":1}`)
	requests := map[string]apiRequest{
		"get":    {method: http.MethodGet, segments: path(pages, "shop", "a")},
		"create": whole(http.MethodPost, path(webs, "shop", ""), body).param("fieldManager", "a b&c"),
		"update": whole(http.MethodPut, path(sites, "", "a:b c%2f"), body),
		"apply":  applying(path(pages, "shop", "a"), body).param("fieldManager", "hookloop"),
		"patch": {
			method: http.MethodPatch, segments: path(webs, "shop", "a"), contentType: "application/json-patch+json", body: body,
		},
		"delete": whole(http.MethodDelete, path(webs, "shop", "a"), body),
	}
	for _, prefix := range []string{"", "/k8s/clusters/one", "/k8s/"} {
		ours, clientGo := twoWays(t, &rest.Config{
			Host: web.URL + prefix, QPS: -1, BearerToken: "secret", UserAgent: "hookloop/test",
			Impersonate: rest.ImpersonationConfig{UserName: "other"},
		})
		for name, q := range requests {
			for _, ctx := range []context.Context{t.Context(), trace.ContextWithSpanContext(t.Context(), span)} {
				got = nil
				for _, send := range []func(context.Context, apiRequest) ([]byte, error){ours, clientGo} {
					if data, err := send(ctx, q); err != nil || string(data) != `{"kind":"Page"}` {
						t.Fatalf("%s: %s, %v", name, data, err)
					}
				}
				if diff := cmp.Diff(got[1], got[0]); diff != "" {
					t.Errorf("%s at %q (-client-go +ours):\n%s", name, prefix, diff)
				}
			}
		}
	}
}

// TestPasswordInHost: a user and a password in the host's URL are sent, as net/http's client does.
func TestPasswordInHost(t *testing.T) {
	var got []string
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"Page"}`)) // a closed connection is not the test's fault
	}))
	defer web.Close()
	host := strings.Replace(web.URL, "http://", "http://user:secret@", 1)
	ours, clientGo := twoWays(t, &rest.Config{Host: host, QPS: -1})
	for _, send := range []func(context.Context, apiRequest) ([]byte, error){ours, clientGo} {
		if _, err := send(t.Context(), apiRequest{method: http.MethodGet, segments: path(pages, "shop", "a")}); err != nil {
			t.Fatal(err)
		}
	}
	if got[0] != got[1] || got[0] == "" {
		t.Errorf("authorization %q, want client-go's %q", got[0], got[1])
	}
}

// counted counts what client-go's metrics observe.
type counted struct {
	mu    sync.Mutex // guards calls
	calls map[string]int
}

func (c *counted) add(format string, values ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[fmt.Sprintf(format, values...)]++
}

// Increment counts a response.
func (c *counted) Increment(_ context.Context, code, method, host string) {
	c.add("result %s %s %s", code, method, host)
}

type latencies struct{ *counted }

// Observe counts a request.
func (l latencies) Observe(_ context.Context, verb string, u url.URL, _ time.Duration) {
	l.add("latency %s %s", verb, u.Host)
}

type sizes struct {
	*counted
	name string
}

// Observe counts a size.
func (s sizes) Observe(_ context.Context, verb, host string, size float64) {
	s.add("%s %s %s %v", s.name, verb, host, size)
}

// count puts counters in the place of client-go's metrics until the test ends.
func count(t *testing.T) *counted {
	t.Helper()
	c := &counted{calls: map[string]int{}}
	result := metrics.RequestResult
	latency := metrics.RequestLatency
	limited := metrics.RateLimiterLatency
	sent := metrics.RequestSize
	received := metrics.ResponseSize
	metrics.RequestResult = c
	metrics.RequestLatency = latencies{c}
	metrics.RateLimiterLatency = latencies{c}
	metrics.RequestSize = sizes{c, "sent"}
	metrics.ResponseSize = sizes{c, "received"}
	t.Cleanup(func() {
		metrics.RequestResult = result
		metrics.RequestLatency = latency
		metrics.RateLimiterLatency = limited
		metrics.RequestSize = sent
		metrics.ResponseSize = received
	})
	return c
}

// free is a limiter that counts its tokens. Only every second try gets one.
type free struct {
	flowcontrol.RateLimiter
	tries, tokens int
}

// TryAccept takes a token if the number of tries is odd.
func (f *free) TryAccept() bool {
	f.tries++
	if f.tries%2 == 0 {
		return false
	}
	f.tokens++
	return true
}

// Wait takes a token.
func (f *free) Wait(context.Context) error { f.tokens++; return nil }

// QPS is the limit.
func (f *free) QPS() float32 { return 1 }

// TestUnusualResponsesAreClientGos: errors, retries and metrics are those of client-go, and each
// try of a request takes one token.
func TestUnusualResponsesAreClientGos(t *testing.T) {
	status := func(code int, reason metav1.StatusReason) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_ = json.NewEncoder(w).Encode(metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Reason: reason,
				Code: int32(code), Message: "because",
			})
		}
	}
	text := func(code int, kind, body string) func(w http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", kind)
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	later := func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", "0")
		text(http.StatusTooManyRequests, "text/plain", "later")(w)
	}
	ok := text(http.StatusOK, "application/json", "{}")
	tests := []struct {
		name    string
		answers []func(w http.ResponseWriter)
	}{
		{"the usual", []func(http.ResponseWriter){ok}},
		{"created", []func(http.ResponseWriter){text(http.StatusCreated, "application/json", "{}")}},
		{"a conflict", []func(http.ResponseWriter){status(http.StatusConflict, metav1.StatusReasonConflict)}},
		{"an error of a proxy", []func(http.ResponseWriter){text(http.StatusBadGateway, "text/html", "<p>no</p>")}},
		{"an empty error", []func(http.ResponseWriter){text(http.StatusForbidden, "application/json", "")}},
		{"another content", []func(http.ResponseWriter){text(http.StatusOK, "text/plain", "hello")}},
		{"too many, then accepted", []func(http.ResponseWriter){later, later, ok}},
		{"too many, then a conflict", []func(http.ResponseWriter){
			later, status(http.StatusConflict, metav1.StatusReasonConflict),
		}},
		{"too many each time", slices.Repeat([]func(http.ResponseWriter){later}, 11)},
		{"no answer", []func(http.ResponseWriter){func(http.ResponseWriter) { panic(http.ErrAbortHandler) }}},
	}
	q := whole(http.MethodPut, path(pages, "shop", "a"), []byte(`{"a":1}`))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			type result struct {
				Data, Err string
				Reason    metav1.StatusReason
				Requests  int
				Tokens    int
				Counted   map[string]int
			}
			var results []result
			for way := range 2 {
				requests := 0
				counters := count(t)
				limiter := &free{}
				web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					requests++
					test.answers[requests-1](w)
				}))
				config := &rest.Config{Host: web.URL, RateLimiter: limiter, QPS: 1}
				ours, clientGo := twoWays(t, config)
				send := []func(context.Context, apiRequest) ([]byte, error){ours, clientGo}[way]
				data, err := send(t.Context(), q)
				web.Close()
				r := result{string(data), "", apierrors.ReasonForError(err), requests, limiter.tokens, map[string]int{}}
				host := web.Listener.Addr().String()
				if err != nil {
					r.Err = strings.ReplaceAll(err.Error(), host, "host")
				}
				for name, n := range counters.calls {
					r.Counted[strings.ReplaceAll(name, host, "host")] = n
				}
				results = append(results, r)
			}
			if diff := cmp.Diff(results[1], results[0]); diff != "" {
				t.Errorf("(-client-go +ours):\n%s", diff)
			}
			if n := len(test.answers); results[0].Requests != n {
				t.Errorf("%d requests, want %d", results[0].Requests, n)
			}
		})
	}
}

// TestRequestWaitsForItsToken: a request without a token waits in client-go.
func TestRequestWaitsForItsToken(t *testing.T) {
	s := serve(t, func(string) (int, any) { return http.StatusOK, page("a", nil) })
	limiter := &free{tries: 1}
	s.client.limiter = limiter
	q := apiRequest{method: http.MethodGet, segments: path(pages, "shop", "a")}
	if _, err := s.client.do(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if len(s.requests) != 1 || limiter.tries != 2 {
		t.Errorf("%d requests after %d tries, want one after two", len(s.requests), limiter.tries)
	}
}

// TestShortResponse is an error: the connection ended within the body.
func TestShortResponse(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"kind":`)
	}))
	defer web.Close()
	ours, _ := twoWays(t, &rest.Config{Host: web.URL, QPS: -1})
	_, err := ours(t.Context(), apiRequest{method: http.MethodGet, segments: path(pages, "shop", "a")})
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("err = %v, want an unexpected end", err)
	}
}

// answering is an API server without a network that answers each write with the object.
type answering struct{}

// RoundTrip implements http.RoundTripper.
func (answering) RoundTrip(r *http.Request) (*http.Response, error) {
	n := r.ContentLength
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Request: r, ContentLength: n, Body: r.Body,
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// BenchmarkWrite is one create of a small object, without a network.
func BenchmarkWrite(b *testing.B) {
	w, err := NewWriter(Config{
		Config: &rest.Config{Host: "http://127.0.0.1:1", QPS: -1, Transport: answering{}},
		Tracer: noop.NewTracerProvider().Tracer(""), Meter: &unmetered{}, Clock: clock.RealClock{},
	})
	if err != nil {
		b.Fatal(err)
	}
	a := action(plan.Create, "a")
	a.Body = page("a", map[string]any{"labels": map[string]any{"app": "shop"}})
	b.ReportAllocs()
	for b.Loop() {
		if outcomes := w.All(b.Context(), []plan.Action{a}); outcomes[0].Err != nil {
			b.Fatal(outcomes[0].Err)
		}
	}
}

// BenchmarkRequest is one request, without a network: the client's own way, and client-go alone.
func BenchmarkRequest(b *testing.B) {
	ours, clientGo := twoWays(b, &rest.Config{Host: "http://127.0.0.1:1", QPS: -1, Transport: answering{}})
	q := whole(http.MethodPut, path(pages, "shop", "a"), []byte(`{"a":1}`))
	for _, way := range []struct {
		name string
		send func(context.Context, apiRequest) ([]byte, error)
	}{{"usual", ours}, {"client-go", clientGo}} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := way.send(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
