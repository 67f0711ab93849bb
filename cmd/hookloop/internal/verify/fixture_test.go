package verify

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// TestMain runs more tests at a time than there are processors: they wait for clocks and hooks. The
// flag -parallel takes precedence.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "16"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// errParent is the good hook's error about a parent that it cannot read.
var errParent = errors.New("spec: expected an object with image, text and number")

// goodAnswer is a good hook: it copies fields of the parent into a ConfigMap and a Deployment.
func goodAnswer(parent []byte) (status []byte, children [][]byte, err error) {
	m, err := object.DecodeMap(parent)
	if err != nil {
		return nil, nil, err
	}
	spec, ok := m["spec"].(map[string]any)
	if !ok {
		return nil, nil, errParent
	}
	name := m["metadata"].(map[string]any)["name"]
	encode := func(v any) []byte {
		data, fault := json.Marshal(v)
		err = errors.Join(err, fault)
		return data
	}
	children = append(children, encode(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name},
		"data": map[string]any{"text": spec["text"], "number": fmt.Sprint(spec["number"])},
	}), encode(map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"replicas": spec["replicas"], "selector": map[string]any{"matchLabels": map[string]any{"app": "a"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "a"}},
				"spec": map[string]any{
					"containers": []any{map[string]any{"name": "a", "image": spec["image"]}},
				},
			},
		},
	}))
	return encode(map[string]any{"number": spec["number"]}), children, err
}

// grpcHook is a hook over unary calls. Sync changes the answer of a good one.
type grpcHook struct {
	compositev1.UnimplementedCompositeHookServiceServer
	sync     func(context.Context, *compositev1.SyncResponse) error
	refusal  error // of a parent that cannot be read; nil means FAILED_PRECONDITION
	finalize *compositev1.FinalizeResponse
}

func (h *grpcHook) Sync(ctx context.Context, r *compositev1.SyncRequest) (*compositev1.SyncResponse, error) {
	state, children, err := goodAnswer(r.GetParent().GetBody())
	switch {
	case err != nil && h.refusal != nil:
		return nil, h.refusal
	case err != nil:
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	response := &compositev1.SyncResponse{Status: state}
	for _, c := range children {
		response.Children = append(response.Children, &hookv1.DesiredObject{Body: c})
	}
	if h.sync != nil {
		err = h.sync(ctx, response)
	}
	if err != nil {
		return nil, err
	}
	return response, nil
}

func (h *grpcHook) Finalize(
	ctx context.Context, r *compositev1.FinalizeRequest,
) (*compositev1.FinalizeResponse, error) {
	if h.finalize == nil {
		return h.UnimplementedCompositeHookServiceServer.Finalize(ctx, r)
	}
	return h.finalize, nil
}

// serveGRPC serves a hook with a health service, and returns its address.
func serveGRPC(t *testing.T, h *grpcHook) string {
	t.Helper()
	return serveOn(t, func(s *grpc.Server) {
		healthv1.RegisterHealthServer(s, health.NewServer())
		compositev1.RegisterCompositeHookServiceServer(s, h)
	})
}

func serveOn(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(append(options, grpc.MaxSendMsgSize(1<<30))...)
	register(server)
	return grpctest.Serve(t, server)
}

// webhookResponse is a response of a webhook before it is sent.
type webhookResponse struct {
	status int
	header http.Header
	body   []byte
}

// serveWebhook serves a good hook, the responses of which change changes. It returns the URL of
// sync. A change that returns false ends the connection.
func serveWebhook(t *testing.T, change func(*http.Request, *webhookResponse) bool) string {
	t.Helper()
	return serveWebhookFrom(t, func(request *http.Request) *webhookResponse {
		out := &webhookResponse{status: http.StatusOK, header: http.Header{"Content-Type": {"application/json"}}}
		out.body = webhookAnswer(request)
		if out.body == nil {
			out.status, out.body = http.StatusInternalServerError, []byte(errParent.Error())
		}
		if change != nil && !change(request, out) {
			panic(http.ErrAbortHandler)
		}
		return out
	})
}

// serveWebhookFrom serves a webhook with a function.
func serveWebhookFrom(t *testing.T, respond func(*http.Request) *webhookResponse) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		out := respond(request)
		for name, values := range out.header {
			w.Header()[name] = values
		}
		w.WriteHeader(out.status)
		_, _ = w.Write(out.body) // the client may be gone
	}))
	t.Cleanup(server.Close)
	return server.URL + "/sync"
}

// serveDecompressing serves a good webhook that declares gzip for its questions, and counts those
// that are compressed. If it cannot read them, it answers them with a status.
func serveDecompressing(t *testing.T, reads bool, compressed *atomic.Int64, code int) string {
	t.Helper()
	return serveWebhookFrom(t, func(request *http.Request) *webhookResponse {
		out := &webhookResponse{status: http.StatusOK, header: http.Header{
			"Content-Type": {"application/json"}, "Accept-Encoding": {"gzip"},
		}}
		if request.Header.Get("Content-Encoding") == "gzip" {
			compressed.Add(1)
			plain, err := gzip.NewReader(request.Body)
			if err != nil || !reads {
				out.status, out.body = code, []byte("the question is not JSON")
				return out
			}
			request.Body = io.NopCloser(plain)
		}
		out.body = webhookAnswer(request)
		if out.body == nil {
			out.status, out.body = http.StatusInternalServerError, []byte(errParent.Error())
		}
		return out
	})
}

// webhookAnswer returns the good hook's answer, or nil for an error.
func webhookAnswer(request *http.Request) []byte {
	var question struct {
		Parent     json.RawMessage `json:"parent"`
		Finalizing bool            `json:"finalizing"`
	}
	if json.NewDecoder(request.Body).Decode(&question) != nil {
		return nil
	}
	if question.Finalizing {
		return []byte(`{"children":[],"finalized":true}`)
	}
	state, children, err := goodAnswer(question.Parent)
	if err != nil {
		return nil
	}
	return fmt.Appendf(nil, `{"status":%s,"children":[%s,%s]}`, state, children[0], children[1])
}

// serveHTTP serves a hook by net/http, which does not end calls at their deadlines.
func serveHTTP(t *testing.T, h *grpcHook) string {
	t.Helper()
	handler := grpc.NewServer()
	healthv1.RegisterHealthServer(handler, health.NewServer())
	compositev1.RegisterCompositeHookServiceServer(handler, h)
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = &http.Protocols{}
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// file writes a file and returns its name.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// declaring is a controller of the good hook.
const declaring = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata:
  name: demo
spec:
  generateSelector: true
  parentResource:
    apiVersion: demo.example.com/v1
    resource: demos
  childResources:
  - apiVersion: v1
    resource: configmaps
  - apiVersion: apps/v1
    resource: deployments
  hooks:
    sync:
      version: v2
      webhook:
        url: http://hook/sync
    finalize:
      version: v2
      webhook:
        url: http://hook/finalize
---
apiVersion: demo.example.com/v1
kind: Demo
metadata:
  name: shop
  namespace: shop
spec:
  text: some
  number: 3
  replicas: 2
  image: nginx
  nested:
  - n: 1
    s: text
`

// edited returns a text with the first occurrence of old replaced. It panics if there is none, so
// that a test cannot run with a text that it did not change.
func edited(text, old, with string) string {
	if !strings.Contains(text, old) {
		panic("the text to replace is missing: " + old)
	}
	return strings.Replace(text, old, with, 1)
}

// smallParent has no field to change, so that slow hooks get few questions.
const smallParent = `
apiVersion: demo.example.com/v1
kind: Demo
metadata:
  name: shop
  namespace: shop
spec: {}
`

// verify asks a hook, and returns the findings.
func verify(t *testing.T, o Options) *Report {
	t.Helper()
	for _, address := range o.Addresses {
		o.Insecure = o.Insecure || !strings.Contains(address, "http://")
	}
	report, err := Verify(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// ids returns the ids of the findings of a level, each once.
func ids(r *Report, level Level) []string {
	var all []string
	for _, f := range r.Findings {
		if f.Level == level && !slices.Contains(all, f.ID) {
			all = append(all, f.ID)
		}
	}
	slices.Sort(all)
	return all
}

// text returns the report for people.
func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// finding returns the finding of a rule.
func finding(t *testing.T, r *Report, id string) Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f Finding) bool { return f.ID == id })
	if i < 0 {
		t.Fatalf("there is no finding %s in\n%s", id, text(t, r))
	}
	return r.Findings[i]
}

// both asks for sync and finalize at one address.
func both(address string) []string {
	return []string{address, string(hook.Finalize) + "=" + address}
}
