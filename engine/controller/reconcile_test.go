package controller_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// unstructuredObject is an object without a Go type.
type unstructuredObject = *unstructured.Unstructured

// unregistered is a type that no scheme has.
type unregistered struct{ corev1.ConfigMap }

// results is a Recorder that sends the results of reconciles.
type results chan string

func (r results) Reconciled(one host.Reconcile) {
	r <- one.Controller + " " + one.Result
}

func (r results) Bound(string, int) {}

func (r results) MappersHung(string, int) {}

// recorded is a Recorder that sends the reconciles.
type recorded chan host.Reconcile

func (r recorded) Reconciled(one host.Reconcile) { r <- one }

func (r recorded) Bound(string, int) {}

func (r recorded) MappersHung(string, int) {}

// TestReconcilesAreRecorded with their object, the number of writes, attempts and faults.
func TestReconcilesAreRecorded(t *testing.T) {
	w := newFixture(t)
	got := make(recorded, 100)
	w.host.Recorder = got
	w.server.Put(configMaps, body(configMaps, "a", ""))
	attempts := 0
	w.run(controller.New[configMap]("records").Reconciler(reconciler(
		func(context.Context, *controller.Request[configMap]) (controller.Result, error) {
			switch attempts++; attempts {
			case 1:
				return controller.Result{}, errors.New("refused")
			case 2:
				return controller.Result{}, fmt.Errorf("update: %w", controller.ErrConflict)
			}
			return controller.Result{}, nil
		})))
	for i, want := range []host.Reconcile{
		{Result: "error", Failed: true}, {Result: "conflict", Attempt: 1}, {Result: "ok", Attempt: 2},
	} {
		one := next(t, got)
		if one.Controller != "records" || one.Object != "uid-a" || one.Result != want.Result || one.Failed != want.Failed ||
			one.Attempt != want.Attempt || one.Writes != 0 {
			t.Errorf("reconcile %d is %+v, want %+v of uid-a", i, one, want)
		}
	}
}

// TestFailures of a reconcile are contained and retried, and have results.
func TestFailures(t *testing.T) {
	w := newFixture(t)
	got := make(results, 100)
	w.host.Recorder = got
	w.server.Put(configMaps, body(configMaps, "a", ""))
	attempts := 0
	w.run(controller.New[configMap]("fails").Reconciler(reconciler(
		func(context.Context, *controller.Request[configMap]) (controller.Result, error) {
			switch attempts++; attempts {
			case 1:
				panic("no luck")
			case 2:
				return controller.Result{}, errors.New("refused")
			case 3:
				return controller.Result{}, fmt.Errorf("update: %w", controller.ErrConflict)
			}
			return controller.Result{}, nil
		})))
	for _, want := range []string{"fails panic", "fails error", "fails conflict", "fails ok"} {
		if result := next(t, got); result != want {
			t.Errorf("result is %q, want %q", result, want)
		}
	}
}

// TestObjectsThatDoNotDecode are errors that name object and field, in the request and in lists.
func TestObjectsThatDoNotDecode(t *testing.T) {
	w := newFixture(t)
	got := make(results, 100)
	listed := make(chan error, 100)
	w.host.Recorder = got
	w.server.Put(secrets, body(secrets, "a", ""))
	w.server.Put(configMaps, body(configMaps, "bad", `,"data":{"text":{"no":"text"}}`))
	w.run(
		controller.New[configMap]("objects").Reconciler(reconciler(idle)),
		controller.New[secret]("lists").Watch(controller.TypeOf[configMap]()).Reconciler(
			controller.ReconcileFunc[secret](
				func(_ context.Context, req *controller.Request[secret]) (controller.Result, error) {
					_, err := controller.List[configMap](req)
					listed <- err
					return controller.Result{}, err
				})),
	)
	wants(t, got, "objects InvalidObject")
	const want = `ConfigMap.v1 "shop/bad" as *v1.ConfigMap: data: got an object, expected a string`
	var invalid *controller.DecodeError
	if err := next(t, listed); !errors.As(err, &invalid) || err.Error() != want {
		t.Errorf("List = %v, want %s", err, want)
	}
	w.server.Put(configMaps, body(configMaps, "bad", `,"data":{"text":"good"}`))
	for left := map[string]bool{"objects ok": true, "lists ok": true}; len(left) > 0; {
		delete(left, next(t, got))
	}
}

// TestReadsThatCannotBe are errors, never "no objects".
func TestReadsThatCannotBe(t *testing.T) {
	w := newFixture(t)
	w.server.Put(configMaps, body(configMaps, "a", ""))
	errs := make(chan map[string]error, 10)
	old := make(chan controller.Reader, 10)
	key := controller.Key{Namespace: "shop", Name: "x"}
	w.run(controller.New[configMap]("reads").Watch(controller.TypeOf[*corev1.Node]()).Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			all := map[string]error{}
			_, all[`controller "reads" does not declare the type *v1.Secret; expected a Watch of it`] =
				controller.Get[secret](req, key)
			_, all["is not registered in the scheme"] = controller.List[*unregistered](req)
			_, all["type *unstructured.Unstructured: has no kind; expected NewFor or TypeFor"] =
				controller.List[unstructuredObject](req)
			_, all["the resource is cluster-scoped, expected no namespace"] = controller.Get[*corev1.Node](req, key)
			_, all["the resource is namespaced, expected a namespace"] =
				controller.Get[configMap](req, controller.Key{Name: "x"})
			_, all["the name is empty"] = controller.Get[configMap](req, controller.Key{Namespace: "shop"})
			_, all["the owner has no UID"] = controller.Owned[configMap](req, &corev1.ConfigMap{})
			_, all[`ConfigMap.v1 "shop/x" does not exist`] = controller.GetFor(req, configMaps.GVK, key)
			errs <- all
			old <- req
			return controller.Result{}, nil
		})))
	for want, err := range next(t, errs) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
	ended := next(t, old)
	eventually(t, func() bool {
		_, err := controller.Get[configMap](ended, key)
		return err != nil && strings.Contains(err.Error(), "the reconcile has ended")
	}, func() string { return "a Request can be used after its reconcile" })
}

// TestWhere reconciles an object once more when it ceases to be accepted by labels, and then no
// longer.
func TestWhere(t *testing.T) {
	w := newFixture(t)
	seen := make(chan string, 100)
	w.server.Put(configMaps, body(configMaps, "other", ""))
	w.server.Put(configMaps, labelled("a", "x"))
	w.run(controller.New[configMap]("where").
		WhereLabels(labels.SelectorFromSet(labels.Set{"team": "x"})).
		Where(func(o configMap) bool { return o.Name != "excluded" }).
		Reconciler(reconciler(func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			seen <- req.Key.Name + " " + req.Object.Labels["team"]
			return controller.Result{}, nil
		})))
	w.server.Put(configMaps, labelled("excluded", "x"))
	if got := next(t, seen); got != "a x" {
		t.Errorf("reconciled is %q, want a", got)
	}
	w.server.Put(configMaps, labelled("a", "y"))
	w.server.Put(configMaps, labelled("b", "x"))
	if got := next(t, seen); got != "b x" {
		t.Errorf("reconciled is %q, want b", got)
	}
}

// TestWherePanics keeps the event of an object for which a restriction panics, and tries again.
func TestWherePanics(t *testing.T) {
	w := newFixture(t)
	seen := make(chan string, 100)
	calls := 0
	w.host.Workers = 1
	w.run(controller.New[configMap]("where").
		Where(func(configMap) bool {
			calls++
			if calls <= 3 { // the event, and the first two reconciles
				panic("no luck")
			}
			return true
		}).
		Reconciler(reconciler(func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			seen <- req.Key.Name
			return controller.Result{}, nil
		})))
	w.server.Put(configMaps, body(configMaps, "a", ""))
	wants(t, seen, "a")
}

// labelled is the JSON of a ConfigMap with a label.
func labelled(name, team string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"shop","name":%q,"uid":"uid-%s",`+
		`"labels":{"team":%q}}}`, name, name, team)
}

// TestStart runs the initializer with filled caches before the first reconcile; if it fails, the
// controller is started again, and sources with it.
func TestStart(t *testing.T) {
	w := newFixture(t)
	steps := make(chan string, 100)
	w.server.Put(configMaps, body(configMaps, "a", ""))
	keys := make(chan controller.Key, 1)
	times := 0
	group := w.run(controller.New[configMap]("starts").
		Initialize(func(_ context.Context, rt *controller.Runtime) error {
			_, err := controller.Get[configMap](rt, controller.Key{Namespace: "shop", Name: "a"})
			times++
			steps <- fmt.Sprintf("initialize %v", err)
			if times == 1 {
				return errors.New("no luck")
			}
			return err
		}).
		Source(controller.Channel(keys)).
		Reconciler(reconciler(func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			steps <- fmt.Sprintf("%s %v %s", req.Key.Name, req.Object != nil, req.Causes[0].Kind)
			return controller.Result{}, nil
		})))
	for _, want := range []string{"initialize <nil>", "initialize <nil>", "a true initial"} {
		if got := next(t, steps); got != want {
			t.Errorf("step is %q, want %q", got, want)
		}
		if problems := group.Problems(); want == "a true initial" && len(problems) > 0 {
			t.Errorf("problems are %q, want none", problems)
		}
	}
	keys <- controller.Key{Namespace: "shop", Name: "nowhere"}
	if got := next(t, steps); got != "nowhere false trigger" {
		t.Errorf("step is %q, want the key of the channel", got)
	}
}

// TestServedInAnotherWay restarts a controller when its kind becomes another resource.
func TestServedInAnotherWay(t *testing.T) {
	w := newFixture(t)
	w.serve(shops)
	renamed := shops
	renamed.Plural = "stores"
	w.server.Put(shops, body(shops, "a", ""))
	w.server.Put(renamed, body(shops, "b", ""))
	seen := make(chan string, 100)
	w.run(controller.NewFor("shops", shops.GVK).Reconciler(controller.ReconcileFunc[unstructuredObject](
		func(_ context.Context, req *controller.Request[unstructuredObject]) (controller.Result, error) {
			seen <- req.Object.GetName()
			return controller.Result{}, nil
		})))
	wants(t, seen, "a")
	w.serve(renamed)
	wants(t, seen, "b")
}

// spans is an exporter of spans.
type spans struct{ *tracetest.InMemoryExporter }

// of returns the spans with a name.
func (s spans) of(name string) []tracetest.SpanStub {
	return slices.DeleteFunc(s.GetSpans(), func(x tracetest.SpanStub) bool { return x.Name != name })
}

// TestTraces puts the reconciles of one generation into one trace, until one writes nothing and
// waits for nothing. Later ones have traces of their own with a link.
func TestTraces(t *testing.T) {
	w := newFixture(t)
	w.serve(shops)
	exported := spans{tracetest.NewInMemoryExporter()}
	w.host.Tracer = sdktrace.NewTracerProvider(
		sdktrace.WithSyncer(exported), sdktrace.WithIDGenerator(change.IDGenerator{})).Tracer("test")
	w.host.Sampled = func(trace.TraceID) bool { return true }
	seen := make(chan int64, 100)
	var mu sync.Mutex // guards pending
	pending := true
	set := func(v bool) {
		mu.Lock()
		defer mu.Unlock()
		pending = v
	}
	w.run(controller.NewFor("traced", shops.GVK).Reconciler(controller.ReconcileFunc[unstructuredObject](
		func(_ context.Context, req *controller.Request[unstructuredObject]) (controller.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			seen <- req.Object.GetGeneration()
			return controller.Result{Pending: pending}, nil
		})))
	put := func(generation int) {
		w.server.Put(shops, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Shop","metadata":`+
			`{"namespace":"shop","name":"a","uid":"u","generation":%d}}`, generation))
	}
	reconciles := func(n int) {
		t.Helper()
		next(t, seen)
		eventually(t, func() bool { return len(exported.of("reconcile traced")) == n }, func() string {
			return fmt.Sprintf("there are %d spans, want %d", len(exported.of("reconcile traced")), n)
		})
	}
	put(1)
	reconciles(1)
	put(1) // such as a change of the status
	reconciles(2)
	set(false)
	put(1)
	reconciles(3)
	put(1)
	reconciles(4)
	put(2)
	reconciles(5)
	eventually(t, func() bool { return len(exported.of("change shops.example.com")) == 2 },
		func() string { return "there are not two changes" })
	all := exported.of("reconcile traced")
	roots := exported.of("change shops.example.com")
	first := roots[0].SpanContext.TraceID()
	second := roots[1].SpanContext.TraceID()
	for i, want := range []trace.TraceID{first, first, first, {}, second} {
		got := all[i].SpanContext.TraceID()
		if want.IsValid() && got != want || !want.IsValid() && (got == first || got == second) {
			t.Errorf("reconcile %d is in the trace %s, want %s", i, got, want)
		}
	}
	if links := all[3].Links; len(links) != 1 || links[0].SpanContext.TraceID() != first {
		t.Errorf("links are %v, want one to the change", links)
	}
	if want := attribute.String("hookloop.controller", "traced"); !slices.Contains(all[0].Attributes, want) {
		t.Errorf("attributes are %v, want %v", all[0].Attributes, want)
	}
}
