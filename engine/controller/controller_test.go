package controller_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/cachetest"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	configMaps = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, Plural: "configmaps", Namespaced: true,
	}
	secrets = object.Resource{
		GVK: schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, Plural: "secrets", Namespaced: true,
	}
	nodes = object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Node"}, Plural: "nodes"}
	shops = object.Resource{
		GVK:    schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Shop"},
		Plural: "shops", Namespaced: true,
	}
)

// fixture is a small API server with a host for controllers under test.
type fixture struct {
	t      *testing.T
	server *cachetest.Server
	host   *host.Host
	// log is the log of controllers that run later.
	log klog.Logger
	*served
}

// served are the resources that the API server serves.
type served struct {
	mu      sync.Mutex // guards the fields below
	all     map[schema.GroupVersionKind]object.Resource
	changed chan struct{}
}

func (s *served) Kind(gvk schema.GroupVersionKind) (object.Resource, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.all[gvk]; ok {
		return r, nil
	}
	return object.Resource{}, &discovery.NotFoundError{APIVersion: gvk.GroupVersion().String(), Name: gvk.Kind}
}

func (s *served) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// serve adds a resource.
func (s *served) serve(r object.Resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[r.GVK] = r
	close(s.changed)
	s.changed = make(chan struct{})
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := cachetest.New(t)
	objects, err := cache.New(cache.Config{Config: server.Config()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(objects.Close)
	s := &served{all: map[schema.GroupVersionKind]object.Resource{}, changed: make(chan struct{})}
	for _, r := range []object.Resource{configMaps, secrets, nodes} {
		s.serve(r)
	}
	events := report.NewEvents(t.Context(), report.EventConfig{
		Client: fake.NewClientset().CoreV1(), Component: "test", QPS: 100, Burst: 100,
	})
	t.Cleanup(events.Stop)
	return &fixture{t: t, server: server, served: s, log: klog.Background(), host: &host.Host{
		Events: events,
		Cache:  objects, Resources: s, Tracer: noop.NewTracerProvider().Tracer(""), Clock: clock.RealClock{},
		Scheme: scheme.Scheme, Workers: 2, Sampled: func(trace.TraceID) bool { return false },
	}}
}

// run runs controllers until the test ends, and returns their group.
func (w *fixture) run(all ...controller.Declared) *host.Group {
	w.t.Helper()
	group, err := host.NewGroup(w.host, all...)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(klog.NewContext(w.t.Context(), w.log))
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
	})
	return group
}

// body is the JSON of an object; more are further members.
func body(r object.Resource, name, more string) string {
	namespace := `"namespace":"shop",`
	if !r.Namespaced {
		namespace = ""
	}
	apiVersion, kind := r.GVK.ToAPIVersionAndKind()
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s"name":%q,"uid":"uid-%s"}%s}`,
		apiVersion, kind, namespace, name, name, more)
}

// next receives from c, or fails the test.
func next[V any](t *testing.T, c <-chan V) V {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
		panic("unreachable")
	}
}

// eventually waits until a condition holds, and fails the test with why after a deadline.
func eventually(t *testing.T, holds func() bool, why func() string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true,
		func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		t.Fatal(why())
	}
}

// wants receives until it gets a value.
func wants(t *testing.T, c <-chan string, want string) {
	t.Helper()
	for {
		if got := next(t, c); got == want {
			return
		}
	}
}

type (
	configMap = *corev1.ConfigMap
	secret    = *corev1.Secret
)

// reconciler is a ReconcileFunc of ConfigMaps.
type reconciler = controller.ReconcileFunc[configMap]

// TestReadsBringKeysBack reconciles a key again after an event of an object that it has looked for
// in vain, without any mapper.
func TestReadsBringKeysBack(t *testing.T) {
	w := newFixture(t)
	seen := make(chan string, 100)
	w.server.Put(configMaps, body(configMaps, "a", `,"data":{"secret":"s"}`))
	w.run(controller.New[configMap]("reads").Watch(controller.TypeOf[secret]()).Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			s, err := controller.Get[secret](req, controller.Key{
				Namespace: req.Key.Namespace, Name: req.Object.Data["secret"],
			})
			switch {
			case controller.IsNotFound(err):
				seen <- req.Key.Name + " without"
			case err != nil:
				return controller.Result{}, err
			default:
				seen <- req.Key.Name + " with " + string(s.Data["text"])
			}
			return controller.Result{}, nil
		})))
	wants(t, seen, "a without")
	w.server.Put(secrets, body(secrets, "s", `,"data":{"text":"b25l"}`))
	wants(t, seen, "a with one")
	w.server.Put(configMaps, body(configMaps, "a", `,"data":{"secret":"other"}`))
	wants(t, seen, "a without")
	w.server.Put(secrets, body(secrets, "other", `,"data":{"text":"dHdv"}`))
	wants(t, seen, "a with two")
	w.server.Delete(secrets, "shop", "other")
	wants(t, seen, "a without")
}

// idle is a reconciler that does nothing.
func idle(context.Context, *controller.Request[configMap]) (controller.Result, error) {
	return controller.Result{}, nil
}

func TestDeclarationFaults(t *testing.T) {
	w := newFixture(t)
	ofNodes := controller.NewIndex("zone", func(n *corev1.Node) []string { return []string{n.Labels["zone"]} })
	good := func() *controller.Controller[configMap] {
		return controller.New[configMap]("good").Reconciler(reconciler(idle))
	}
	for name, test := range map[string]struct {
		declared []controller.Declared
		want     string
	}{
		"no reconciler": {[]controller.Declared{controller.New[configMap]("c")}, "expected Reconciler"},
		"no name": {
			[]controller.Declared{controller.New[configMap]("").Reconciler(reconciler(idle))}, "name is empty",
		},
		"a name that no finalizer and no label can have": {
			[]controller.Declared{controller.New[configMap]("my copies").Reconciler(reconciler(idle))}, "the name is invalid",
		},
		"a nil function as reconciler": {
			[]controller.Declared{controller.New[configMap]("c").Reconciler(reconciler(nil))}, "expected Reconciler",
		},
		"a nil function as source": {
			[]controller.Declared{good().Source(controller.SourceFunc(nil))}, "source 0 is nil",
		},
		"a nil mapper": {
			[]controller.Declared{good().Watch(controller.TypeOf[secret](), controller.SameName(), nil)},
			"watch of *v1.Secret: a mapper is nil",
		},
		"a nil mapper among several": {
			[]controller.Declared{good().Watch(controller.TypeOf[secret](), controller.Multi(nil))}, "a mapper is nil",
		},
		"a nil function and a nil selector": {
			[]controller.Declared{good().Where(nil).WhereLabels(nil)},
			"function 0 of Where is nil\nselector 0 of WhereLabels is nil",
		},
		"one name twice": {[]controller.Declared{good(), good()}, `"good": two controllers have this name`},
		"an index of another type": {
			[]controller.Declared{good().Index(ofNodes)}, `index "zone": controller "good" does not declare the type *v1.Node`,
		},
		"no kind": {
			[]controller.Declared{good().Watch(controller.TypeFor(schema.GroupVersionKind{Kind: "Shop"}))},
			"expected a version and a kind",
		},
		"a mapper of another type": {
			[]controller.Declared{good().Watch(controller.TypeOf[secret](), controller.Map(
				func(context.Context, controller.Reader, *corev1.Node, *corev1.Node) ([]controller.Key, error) {
					return nil, nil
				}))},
			"the mapper takes *v1.Node, expected the type of the watched Secret.v1",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := host.NewGroup(w.host, test.declared...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("NewGroup = %v, want an error with %q", err, test.want)
			}
		})
	}
	if _, err := host.NewGroup(w.host, good()); err != nil {
		t.Errorf("NewGroup = %v for a good declaration", err)
	}
}

// TestKindNotServed waits for the kind, and runs the other controllers meanwhile.
func TestKindNotServed(t *testing.T) {
	w := newFixture(t)
	seen := make(chan string, 100)
	w.server.Put(configMaps, body(configMaps, "a", ""))
	w.server.Put(shops, body(shops, "b", ""))
	note := func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
		seen <- req.Key.Name
		return controller.Result{}, nil
	}
	group := w.run(
		controller.New[configMap]("waits").Watch(controller.TypeFor(shops.GVK), controller.SameName()).
			Reconciler(reconciler(note)),
		controller.New[configMap]("runs").Reconciler(reconciler(note)),
	)
	wants(t, seen, "a")
	want := []string{`controller "waits" does not run: the API server does not serve Shop of example.com/v1; ` +
		"the controller starts when it does"}
	eventually(t, func() bool { return group.Ready() && cmp.Equal(group.Problems(), want) }, func() string {
		return fmt.Sprintf("ready is %v, the problems are %q, want %q", group.Ready(), group.Problems(), want)
	})
	w.serve(shops)
	wants(t, seen, "b")
	eventually(t, func() bool { return len(group.Problems()) == 0 }, func() string {
		return fmt.Sprintf("the problems are %q, want none", group.Problems())
	})
}
