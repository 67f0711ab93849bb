package benchmarks

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	sdk "github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/transports/webhook"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const children = 3

var (
	parents = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"},
		Plural:     "webs",
		Namespaced: true,
		HasStatus:  true,
	}
	deployments = object.Resource{
		GVK:        schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"},
		Plural:     "deployments",
		Namespaced: true,
		HasStatus:  true,
	}
)

// desired is one child in the hook's answer.
const desired = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web-%d","namespace":"shop",` +
	`"labels":{"app":"web","controller-uid":"u"}},` +
	`"spec":{"replicas":1,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},` +
	`"spec":{"containers":` +
	`[{"name":"server","image":"nginx:1.27","ports":[{"containerPort":8080}],"env":[{"name":"A","value":"1"},` +
	`{"name":"B","value":"2"}]}]}}}}`

// world is the cache after a parent has converged. It does not change, so that nothing may be
// written.
type world struct {
	*viewtest.Reader
	parent   *object.Object
	children []*object.Object
}

// converged returns a world with the children of the answer, as an API server would have stored
// them.
func converged(b testing.TB) *world {
	b.Helper()
	w := &world{
		parent: decode(
			b,
			`{"apiVersion":"example.com/v1","kind":"Web","metadata":{"name":"web","namespace":"shop","uid":"u",`+
				`"resourceVersion":"1",`+
				`"generation":1},"spec":{"replicas":3,"text":"hello"},"status":{"observedGeneration":1,"ready":3}}`,
		),
	}
	for i := range children {
		body := decodeMap(b, fmt.Sprintf(desired, i))
		metadata, _ := body["metadata"].(map[string]any)
		metadata["uid"], metadata["resourceVersion"], metadata["generation"] = fmt.Sprint(
			"uid-",
			i,
		), fmt.Sprint(
			i+2,
		), int64(1)
		metadata["creationTimestamp"] = "2026-01-01T00:00:00Z"
		metadata["annotations"] = map[string]any{object.LastAppliedAnnotation: fmt.Sprintf(desired, i)}
		metadata["ownerReferences"] = []any{
			map[string]any{
				"apiVersion":         "example.com/v1",
				"kind":               "Web",
				"name":               "web",
				"uid":                "u",
				"controller":         true,
				"blockOwnerDeletion": true,
			},
		}
		body["status"] = map[string]any{
			"observedGeneration": int64(1),
			"replicas":           int64(1),
			"readyReplicas":      int64(1),
			"conditions": []any{
				map[string]any{
					"type":    "Available",
					"status":  "True",
					"reason":  "MinimumReplicasAvailable",
					"message": "Deployment has minimum availability.",
				},
				map[string]any{
					"type":    "Progressing",
					"status":  "True",
					"reason":  "NewReplicaSetAvailable",
					"message": "ReplicaSet has progressed.",
				},
			},
		}
		o, err := object.FromMap(body)
		if err != nil {
			b.Fatal(err)
		}
		w.children = append(w.children, o)
	}
	w.Reader = viewtest.NewReader(append(slices.Clone(w.children), w.parent)...)
	return w
}

func decode(b testing.TB, text string) *object.Object {
	b.Helper()
	o, err := object.Decode([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return o
}

func decodeMap(b testing.TB, text string) map[string]any {
	b.Helper()
	m, err := object.DecodeMap([]byte(text))
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// answer returns the hook's constant answer.
func answer() *hook.Answer {
	a := &hook.Answer{Status: json.RawMessage(`{"ready":3}`)}
	for i := range children {
		a.Children = append(a.Children, json.RawMessage(fmt.Sprintf(desired, i)))
	}
	return a
}

// silent records nothing but the last outcome.
type silent struct{ last pipeline.Outcome }

func (*silent) Wrote(string, string)                        {}
func (s *silent) Synced(_ string, outcome pipeline.Outcome) { s.last = outcome }

// newPipeline makes the pipeline of a controller with generated selectors, without an API server.
func newPipeline(b testing.TB, w *world, h *hook.Opened, heard *silent) *pipeline.Pipeline {
	b.Helper()
	declared := decode(b,
		`{"apiVersion":"metacontroller.k8s.io/v1alpha1","kind":"CompositeController","metadata":{"name":"web","uid":"c"},`+
			`"spec":{}}`)
	yes := true
	c := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: v1alpha1.CompositeControllerSpec{
		GenerateSelector: &yes, Hooks: &v1alpha1.CompositeHooks{Sync: &v1alpha1.Hook{}},
		ChildResources: []v1alpha1.ChildResourceRule{{UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: "InPlace"}}},
	}}
	shape, err := composite.New(declared, c, composite.Resources{
		Parent: parents, Children: []object.Resource{deployments}, Custom: func(object.Resource) bool { return true },
	})
	if err != nil {
		b.Fatal(err)
	}
	tracer := noop.NewTracerProvider().Tracer("bench")
	writer, err := act.NewWriter(act.Config{
		Config: &rest.Config{Host: "http://127.0.0.1:1"}, Tracer: tracer, Meter: heard, Clock: clock.RealClock{},
	})
	if err != nil {
		b.Fatal(err)
	}
	return pipeline.New(pipeline.Config{
		Name:       "composite/web",
		Controller: declared,
		Parents:    []object.Resource{parents},
		Shape:      shape,
		OwnsStatus: true,
		Hooks:      map[hook.Op]*hook.Opened{hook.Sync: h},
		Reader:     w,
		Writer:     writer,
		Status:     report.NewStatus(writer),
		Recorder:   heard,
		Tracer:     tracer,
		Clock:      clock.RealClock{},
		ClusterUID: "cluster",
		Sampled:    func(trace.TraceID) bool { return false },
	})
}

// newSync returns a function that runs one sync of a converged parent, caused by one event of the
// parent.
func newSync(b testing.TB, h *hook.Opened) func() {
	b.Helper()
	w := converged(b)
	heard := &silent{}
	p := newPipeline(b, w, h, heard)
	item := queue.Item[hook.Key]{
		Key: hook.ParentKey(w.parent.Ref()), Count: 1,
		Causes: []queue.Cause{{Kind: queue.CauseObject, Ref: w.parent.Ref(), ResourceVersion: "later"}},
	}
	sync := func() {
		if _, err := p.Reconcile(b.Context(), item); err != nil || heard.last.Result != "converged" {
			b.Fatalf("Reconcile = %v, %+v, want converged", err, heard.last)
		}
	}
	sync() // the first sync has no memory
	return sync
}

// noopSyncs are the transports by which a sync without changes is measured: of a parent with three
// Deployments, with tracing off. The hook runs in the same process, so that the figures contain its
// own work.
var noopSyncs = []struct {
	name string
	open func(b testing.TB) *hook.Opened
	// allocations bounds those of one sync. The figure varies by a few, because net/http and gRPC
	// have goroutines of their own.
	allocations float64
}{
	{"inproc", openFunction, 59},
	{"webhook", openWebhook, 166},
	{"unary", func(b testing.TB) *hook.Opened { return openGRPC(b, "Unary", answer()) }, 463},
	{"stream", func(b testing.TB) *hook.Opened { return openGRPC(b, "Stream", answer()) }, 227},
}

func openFunction(testing.TB) *hook.Opened {
	same := answer()
	ask := func(context.Context, *hook.Question) (*hook.Answer, error) { return same, nil }
	return &hook.Opened{Hook: hook.Func(ask), Address: "inproc:web"}
}

func openWebhook(b testing.TB) *hook.Opened {
	b.Helper()
	a := answer()
	body, err := json.Marshal(map[string]any{"status": a.Status, "children": a.Children})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, err := w.Write(body); err != nil {
			b.Error(err)
		}
	}))
	b.Cleanup(server.Close)
	return open(b, webhook.Open, fmt.Sprintf(`{"url":%q}`, server.URL))
}

// openGRPC serves an answer by the SDK.
func openGRPC(b testing.TB, mode string, a *hook.Answer) *hook.Opened {
	b.Helper()
	response := &sdk.SyncResponse{Status: a.Status}
	for _, child := range a.Children {
		response.Children = append(response.Children, sdk.Child{Object: child})
	}
	address := make(chan net.Addr, 1)
	ended := make(chan error, 1)
	ctx, stop := context.WithCancel(context.Background())
	o := sdk.ServeOptions{Listening: func(at net.Addr) { address <- at }}
	o.Listen, o.Log = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	go func() { // ends with ctx
		ended <- sdk.Serve(ctx, o, sdk.Composite{
			Sync: func(context.Context, *sdk.SyncRequest) (*sdk.SyncResponse, error) { return response, nil },
		})
	}()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	select {
	case at := <-address:
		return open(b, (&grpc.Transport{}).Open, fmt.Sprintf(`{"target":%q,"insecure":true,"mode":%q}`, at, mode))
	case err := <-ended:
		b.Fatal(err)
		return nil
	}
}

// open opens a hook until the test ends.
func open(b testing.TB, opener hook.Opener, field string) *hook.Opened {
	b.Helper()
	h, err := opener(hook.Config{
		ControllerKind: "CompositeController", ControllerName: "web", Op: hook.Sync, Version: "v1",
		Field: json.RawMessage(field),
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := h.Close(); err != nil {
			b.Error(err)
		}
	})
	return h
}

// BenchmarkNoopSync is one sync without changes.
func BenchmarkNoopSync(b *testing.B) {
	for _, transport := range noopSyncs {
		b.Run(transport.name, func(b *testing.B) {
			sync := newSync(b, transport.open(b))
			b.ReportAllocs()
			for b.Loop() {
				sync()
			}
		})
	}
}
