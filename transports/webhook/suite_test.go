package webhook

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open: Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			return field(serve(t, handler(t, behave)).URL+"/hook?token=hidden", timeout)
		},
		Nowhere: func(t *testing.T) json.RawMessage { return field("http://"+transporttest.ClosedAddress(t), "") },
		Lacks:   []transporttest.Fault{transporttest.Reject},
	})
}

// TestUnixSocketsPassTheSuiteOfAllTransports asks hooks that listen on unix sockets.
func TestUnixSocketsPassTheSuiteOfAllTransports(t *testing.T) {
	sockets := t.TempDir()
	name := func() string { return filepath.Join(sockets, rand.Text()) }
	socketField := func(path, timeout string) json.RawMessage {
		return fmt.Appendf(nil, `{"url":"unix://%s","path":"/hook?token=hidden","timeout":%q}`, path, timeout)
	}
	transporttest.Run(t, transporttest.Harness{
		Open: (&Transport{Sockets: endpoint.Sockets{sockets}}).Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			path := name()
			listener, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.String() != "/hook?token=hidden" || r.Host != "localhost" {
					t.Errorf("got a request for %s at %s", r.URL, r.Host)
				}
				handler(t, behave).ServeHTTP(w, r)
			}))
			_ = server.Listener.Close() // the one on loopback
			server.Listener = listener
			server.Start()
			t.Cleanup(server.Close)
			return socketField(path, timeout)
		},
		Nowhere: func(*testing.T) json.RawMessage { return socketField(name(), "") },
		Lacks:   []transporttest.Fault{transporttest.Reject},
	})
}

// TestUnixSocketsAreChecked rejects sockets outside of the folders, and credentials.
func TestUnixSocketsAreChecked(t *testing.T) {
	transport := &Transport{Sockets: endpoint.Sockets{"/run/hooks"}}
	for field, want := range map[string]string{
		`{"url":"unix:///run/docker.sock"}`:                               `"/run/docker.sock" is in no folder`,
		`{"url":"unix:///run/hooks/../d.sock"}`:                           `url: "/run/hooks/../d.sock"`,
		`{"url":"unix:hook.sock"}`:                                        "url: expected the absolute path",
		`{"url":"unix://host/run/hooks/a.sock"}`:                          "url: expected the absolute path",
		`{"url":"unix:///run/hooks/a.sock","basicAuth":{"secretRef":{}}}`: "url: a unix socket",
	} {
		_, err := transport.Open(hook.Config{Op: hook.Sync, Version: "v2", Field: json.RawMessage(field)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", field, err, want)
		}
	}
}

func field(url, timeout string) json.RawMessage {
	return fmt.Appendf(nil, `{"url":%q,"timeout":%q}`, url, timeout)
}

func serve(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// handler implements the hook's side of the suite.
func handler(t *testing.T, behave transporttest.Behavior) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read the question: %v", err)
			return
		}
		ctx := otel.GetTextMapPropagator().Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		got, err := received(ctx, body)
		if err != nil {
			t.Errorf("the question is not as expected: %v: %s", err, body)
		}
		reply(ctx, w, got, behave(ctx, got))
	})
}

// received decodes a request of any controller kind.
func received(ctx context.Context, body []byte) (transporttest.Received, error) {
	var request struct {
		Controller, Parent, Object     json.RawMessage
		Children, Attachments, Related map[string]map[string]json.RawMessage
		MapKey                         string
		Input                          json.RawMessage
		Outputs                        map[string]map[string]json.RawMessage
		Finalizing                     *bool
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return transporttest.Received{}, err
	}
	var controller struct{ Metadata struct{ Name string } }
	if err := json.Unmarshal(request.Controller, &controller); err != nil || controller.Metadata.Name == "" {
		return transporttest.Received{}, fmt.Errorf("controller %s: %w", request.Controller, err)
	}
	got := transporttest.Received{
		Kind: hook.Composite, Op: hook.Sync, Parent: request.Parent,
		Children: texts(request.Children), Related: texts(request.Related), TraceID: transporttest.TraceID(ctx),
	}
	if request.Object != nil {
		got.Kind, got.Parent, got.Children = hook.Decorator, request.Object, texts(request.Attachments)
	}
	if request.Outputs != nil {
		got.Kind, got.Op, got.Children = hook.Mapping, hook.Map, texts(request.Outputs)
		got.MapKey = request.MapKey
		got.Input = request.Input
		if request.Input == nil {
			got.Op = hook.Tombstone
		}
	}
	switch {
	case request.Finalizing == nil:
		got.Op = hook.Customize
		got.Kind = "" // a customize request does not name it
	case *request.Finalizing:
		got.Op = hook.Finalize
	}
	return got, nil
}

func texts(groups map[string]map[string]json.RawMessage) map[string]map[string]string {
	out := map[string]map[string]string{}
	for kind, group := range groups {
		out[kind] = map[string]string{}
		for name, o := range group {
			out[kind][name] = string(o)
		}
	}
	return out
}

// reply writes the answer of the case.
func reply(ctx context.Context, w http.ResponseWriter, got transporttest.Received, r transporttest.Reply) {
	switch r.Fault {
	case transporttest.Fail:
		http.Error(w, transporttest.FailText+"\n"+strings.Repeat("and more ", 10000), http.StatusInternalServerError)
	case transporttest.Throttle:
		w.Header().Set("Retry-After", fmt.Sprint(transporttest.RetryAfter.Seconds()))
		w.WriteHeader(http.StatusTooManyRequests)
	case transporttest.Garbage:
		_, _ = io.WriteString(w, "<html>\n")
	case transporttest.Huge:
		_, _ = io.WriteString(w, `{"status":"`+strings.Repeat("x", transporttest.HugeBytes)+`"}`)
	case transporttest.Hang:
		<-ctx.Done()
	default:
		_ = json.NewEncoder(w).Encode(answerJSON(got, r.Answer))
	}
}

func answerJSON(got transporttest.Received, a *hook.Answer) map[string]any {
	out := map[string]any{}
	if got.Op == hook.Customize {
		out["relatedResources"] = a.Related
		return out
	}
	out["resyncAfterSeconds"], out["finalized"] = a.ResyncAfter.Seconds(), a.Finalized
	if got.Kind == hook.Mapping {
		out["outputs"] = a.Children
		return out
	}
	out["status"] = a.Status
	if got.Kind == hook.Decorator {
		out["attachments"], out["labels"], out["annotations"] = a.Children, a.Labels, a.Annotations
	} else {
		out["children"] = a.Children
	}
	return out
}
