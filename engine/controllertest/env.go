package controllertest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/gate"
	"github.com/hookloop/hookloop/internal/memapi"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

// KubeconfigVariable is the environment variable that names the kubeconfig of a real control plane to
// run tests on.
const KubeconfigVariable = "HOOKLOOP_TEST_KUBECONFIG"

var kubeconfig = flag.String("controllertest.kubeconfig", os.Getenv(KubeconfigVariable),
	"run the tests of controllers on this control plane instead of the API server in memory")

// Object is an API object as a Go value.
type Object = controller.Object

// Key names an object within its type.
type Key = controller.Key

// TB is the part of [testing.TB] that an [Env] uses, so that other test frameworks can provide it.
type TB interface {
	Helper()
	Context() context.Context
	Cleanup(func())
	Log(args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// KeyOf returns the key of an object.
func KeyOf(o Object) Key { return controller.KeyOf(o) }

// Options configures an [Env]. The zero value is ready to use.
type Options struct {
	// Scheme has the Go types; nil means that of client-go, with Kubernetes' own types.
	Scheme *runtime.Scheme
	// CRDs are created before the controllers run.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// Objects are created in their order before New returns. Their namespaces are created if they do
	// not exist.
	Objects []Object
	// Workers is the number of reconciles at the same time of each controller that declares none;
	// the default is 1, which makes tests repeatable.
	Workers int
	// RewriteLimit is the number of rewrites of one field within a minute after which a key's circuit
	// opens, and RewritePause the time without writes for that key. The defaults are those of a
	// process: 100 and a minute. A negative limit sets none.
	RewriteLimit int
	RewritePause time.Duration
}

// Env is an API server on which a test runs its controllers. Use [New] to make one.
type Env struct {
	t      TB
	scheme *runtime.Scheme
	config *rest.Config
	// memory is nil on a real control plane.
	memory  *memapi.Server
	client  dynamic.Interface
	process *host.Process
	gate    *gate.Gate
	writes  *recorder
	log     *testLog

	mu sync.Mutex // guards the fields below
	// controllers is the number of running controllers.
	controllers int
	// seen is the position of Audit in the server's log.
	seen int
}

// New returns an [Env] that is closed when the test ends. It fails the test if the API server cannot
// be made or rejects an object.
func New(t TB, o Options) *Env {
	t.Helper()
	e := &Env{t: t, scheme: o.Scheme, gate: gate.New(), writes: &recorder{}, log: newTestLog(t)}
	if e.scheme == nil {
		e.scheme = scheme.Scheme
	}
	e.connect(o.CRDs)
	if err := e.start(o); err != nil {
		t.Fatal(err)
	}
	for _, object := range o.Objects {
		e.ensureNamespace(object.GetNamespace())
		create(e, object)
	}
	e.Audit()
	return e
}

// connect makes the API server in memory, or connects to a real one.
func (e *Env) connect(crds []*apiextensionsv1.CustomResourceDefinition) {
	e.t.Helper()
	if *kubeconfig == "" {
		server, err := memapi.New(memapi.Options{CRDs: crds})
		if err != nil {
			e.t.Fatal(err)
		}
		e.t.Cleanup(server.Close)
		e.memory, e.config = server, server.Config()
		return
	}
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		e.t.Fatalf("the control plane of %s: %v", *kubeconfig, err)
	}
	config.QPS = -1
	e.config = config
}

// start makes what the controllers share.
func (e *Env) start(o Options) error {
	ctx := klog.NewContext(context.WithoutCancel(e.t.Context()), testr.NewWithInterface(e.log, testr.Options{}))
	own := rest.CopyConfig(e.config)
	own.UserAgent = helperAgent
	var err error
	e.client, err = dynamic.NewForConfig(own)
	if err != nil {
		return err
	}
	if e.memory == nil {
		if err := e.define(o.CRDs); err != nil {
			return err
		}
	}
	config := rest.CopyConfig(e.config)
	config.UserAgent = controllerAgent
	if e.memory == nil {
		config.Wrap(e.writes.wrap)
	}
	settings := host.Config{
		Config: config, Component: "controllertest", EventsQPS: 100, EventsBurst: 1000,
		Host: host.Host{Scheme: e.scheme, Workers: max(1, o.Workers), Gate: e.gate, GracePeriod: waitTimeout},
	}
	settings.Host.Circuit.Limit = cmp.Or(o.RewriteLimit, 100)
	settings.Host.Circuit.Pause = cmp.Or(o.RewritePause, time.Minute)
	e.process, err = host.New(ctx, settings)
	if err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		e.process.Discovery.Run(running)
	}()
	e.t.Cleanup(func() {
		cancel()
		<-done
		e.process.Close()
	})
	return nil
}

// Config returns a client configuration for the API server, for a test that needs its own client.
func (e *Env) Config() *rest.Config { return rest.CopyConfig(e.config) }

// InMemory reports whether the API server runs in memory, and not on a real control plane.
func (e *Env) InMemory() bool { return e.memory != nil }

// Run starts controllers and returns when their caches are filled. They run until the test ends. A
// fault in a declaration fails the test. Controllers that depend on each other, as actors may, must
// be passed in one call.
func (e *Env) Run(controllers ...controller.Declared) {
	e.t.Helper()
	e.gate.Open()
	e.run(controllers)
}

// RunPaused starts controllers as [Env.Run] does, but they reconcile keys only in [Env.Step] and
// [Env.UntilQuiet].
func (e *Env) RunPaused(controllers ...controller.Declared) {
	e.t.Helper()
	e.mu.Lock()
	running := e.controllers > 0
	e.mu.Unlock()
	if running && !e.gate.Paused() {
		e.t.Fatal("RunPaused: controllers run already; expected RunPaused instead of Run for all of them")
	}
	e.gate.Close()
	e.run(controllers)
}

func (e *Env) run(controllers []controller.Declared) {
	e.t.Helper()
	group, err := host.NewGroup(e.process.Host, controllers...)
	if err != nil {
		e.t.Fatal(err)
	}
	e.mu.Lock()
	e.controllers += len(controllers)
	all := e.controllers
	e.mu.Unlock()
	ctx := klog.NewContext(context.WithoutCancel(e.t.Context()), testr.NewWithInterface(e.log, testr.Options{}))
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		group.Run(ctx)
	}()
	e.t.Cleanup(func() {
		e.gate.Open()
		cancel()
		<-done
	})
	e.await(e.t.Context(), "the controllers to run", func() error {
		if problems := group.Problems(); len(problems) > 0 {
			return fmt.Errorf("controllers that do not run: %v", problems)
		}
		if !group.Ready() || e.gate.Size() < all {
			return fmt.Errorf("controllers have not filled their caches")
		}
		return nil
	})
}
