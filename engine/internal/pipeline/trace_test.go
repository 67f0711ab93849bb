package pipeline

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/internal/watch/viewtest"
	"github.com/hookloop/hookloop/engine/object"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
)

// still is a cache with one parent, and a shape in which the parent needs nothing. Both answer only
// what a sync without writes asks.
type still struct {
	parent *object.Object
	err    error
	// unknown is the error of reading the parent.
	unknown error
}

func (s *still) View(r object.Resource) (view.View, error) {
	if s.unknown != nil {
		return view.View{}, s.unknown
	}
	if s.parent == nil {
		return viewtest.NewReader().View(r)
	}
	return viewtest.NewReader(s.parent).View(r)
}

func (s *still) Observe(in shape.Input) (*plan.Observed, error) {
	if s.parent == nil || s.err != nil {
		return nil, s.err
	}
	return &plan.Observed{Key: in.Key, Parent: s.parent}, nil
}

func (s *still) Questions(o *plan.Observed) []*hook.Question {
	return []*hook.Question{{Kind: hook.Composite, Op: hook.Sync, Parent: o.Parent}}
}

func (s *still) Desired(plan.Input, []*hook.Answer) (*plan.Desired, error) {
	return &plan.Desired{}, nil
}

type outcomes []Outcome

func (o *outcomes) Synced(_ string, outcome Outcome) { *o = append(*o, outcome) }

var web = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Web"}, Plural: "webs", Namespaced: true}

// traced returns a pipeline, its spans and its outcomes.
func traced(s *still, ask hook.Func) (*Pipeline, *tracetest.InMemoryExporter, *outcomes) {
	spans := tracetest.NewInMemoryExporter()
	heard := &outcomes{}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans), sdktrace.WithIDGenerator(change.IDGenerator{}))
	return New(Config{
		Name:       "composite/web",
		Parents:    []object.Resource{web},
		Shape:      s,
		Reader:     s,
		Recorder:   heard,
		Tracer:     provider.Tracer("test"),
		Clock:      clock.RealClock{},
		Hooks:      map[hook.Op]*hook.Opened{hook.Sync: {Hook: ask, Address: "inproc:web"}},
		ClusterUID: "cluster",
		Sampled:    func(trace.TraceID) bool { return true },
	}), spans, heard
}

func generation(t *testing.T, n string) *object.Object {
	t.Helper()
	o, err := object.Decode(
		[]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web","namespace":"shop","uid":"u","generation":` + n +
			`},"status":{"observedGeneration":` + n + `}}`),
	)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func nothing(context.Context, *hook.Question) (*hook.Answer, error) { return &hook.Answer{}, nil }

// event is one event of the parent.
func event(kind queue.CauseKind) queue.Item[hook.Key] {
	key := hook.ParentKey(object.Ref{GVK: web.GVK, Namespace: "shop", Name: "web"})
	return queue.Item[hook.Key]{Key: key, Count: 1, Causes: []queue.Cause{{Kind: kind, Ref: key.Parent}}}
}

// spanLines formats spans as "name in trace of: generation" lines, in the order in which they
// ended.
func spanLines(spans tracetest.SpanStubs, changes map[string]change.ID) []string {
	var lines []string
	for _, s := range spans {
		line := s.Name
		for name, id := range changes {
			switch {
			case s.SpanContext.TraceID() == id.Trace && s.Parent.SpanID() == id.Root:
				line += " below change " + name
			case s.SpanContext.TraceID() == id.Trace && s.SpanContext.SpanID() == id.Root:
				line += ", root of change " + name
			case s.SpanContext.TraceID() == id.Trace:
				line += " in change " + name
			}
			for _, link := range s.Links {
				if link.SpanContext.SpanID() == id.Root {
					line += " linked to change " + name
				}
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func TestSpans(t *testing.T) {
	changes := map[string]change.ID{
		"0": change.Of("cluster", "u", 0),
		"1": change.Of("cluster", "u", 1),
		"2": change.Of("cluster", "u", 2),
	}
	s := &still{parent: generation(t, "1")}
	p, spans, _ := traced(s, nothing)
	steps := []struct {
		name string
		kind queue.CauseKind
		then func()
		want []string
	}{
		{
			"after a restart, what has converged is traced on its own", queue.CauseInitial, func() {},
			[]string{"observe", "plan", "report", "sync composite/web linked to change 1"},
		},
		{
			"a new generation is a change",
			queue.CauseObject,
			func() { s.parent = generation(t, "2") },
			[]string{
				"observe in change 2",
				"plan in change 2",
				"report in change 2",
				"sync composite/web below change 2",
				"change webs, root of change 2",
			},
		},
		{
			"what comes after it is not", queue.CauseResync, func() {},
			[]string{"observe", "plan", "report", "sync composite/web linked to change 2"},
		},
		{
			"a parent without generations has no changes", queue.CauseResync, func() { s.parent = generation(t, "0") },
			[]string{"observe", "plan", "report", "sync composite/web"},
		},
		{
			"a parent that is gone has no change",
			queue.CauseObject,
			func() { s.parent = nil },
			[]string{"observe", "sync composite/web"},
		},
	}
	for _, step := range steps {
		spans.Reset()
		step.then()
		if _, err := p.Reconcile(t.Context(), event(step.kind)); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if diff := cmp.Diff(step.want, spanLines(spans.GetSpans(), changes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

// TestOutcomes checks the result of each end of a sync, and whether it is tried again.
func TestOutcomes(t *testing.T) {
	throttled := func(context.Context, *hook.Question) (*hook.Answer, error) {
		return nil, &hook.Error{Kind: hook.Throttled, RetryAfter: 1, Err: context.DeadlineExceeded}
	}
	stopped := func(context.Context, *hook.Question) (*hook.Answer, error) { return nil, context.Canceled }
	tests := []struct {
		name   string
		source *still
		ask    hook.Func
		want   string
		retry  bool
	}{
		{"nothing to do", &still{parent: generation(t, "1")}, nothing, "converged", false},
		{"gone", &still{}, nothing, "gone", false},
		{"throttled", &still{parent: generation(t, "1")}, throttled, "HookThrottled", false},
		{"shutting down", &still{parent: generation(t, "1")}, stopped, "ShuttingDown", true},
		{
			"the parents are not known",
			&still{unknown: &view.Error{Resource: web, State: view.Stale}},
			nothing,
			"StaleView",
			true,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p, _, heard := traced(test.source, test.ask)
			_, err := p.Reconcile(t.Context(), event(queue.CauseObject))
			if (err != nil) != test.retry || len(*heard) != 1 || (*heard)[0].Result != test.want {
				t.Errorf("Reconcile = %v, outcomes %+v, want one %s", err, *heard, test.want)
			}
		})
	}
}
