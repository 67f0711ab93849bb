package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr/testr"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// fakeEngine works until its context ends and it is released.
type fakeEngine struct {
	running chan struct{}
	finish  chan struct{}
	err     error
}

func (e *fakeEngine) Run(ctx context.Context) error {
	close(e.running)
	<-ctx.Done()
	<-e.finish
	return e.err
}

func (e *fakeEngine) Ready() bool { return true }

func (e *fakeEngine) Warm(ctx context.Context) { <-ctx.Done() }

func (e *fakeEngine) Warmed() bool { return true }

func (e *fakeEngine) Close() {}

func (e *fakeEngine) Problems() []string { return nil }

// freeAddress returns an address that was free a moment ago.
func freeAddress(t *testing.T) string {
	t.Helper()
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close() //nolint:errcheck // it never accepted
	return socket.Addr().String()
}

func newTestProcess(t *testing.T, e *fakeEngine) *process {
	t.Helper()
	c := DefaultConfig()
	c.MetricsAddress, c.HealthAddress = "0", freeAddress(t)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return &process{
		Config: c, rest: &rest.Config{}, log: testr.New(t), metrics: newRegistry("v1"), tracing: tracingOff,
		build: func(context.Context) (runner, error) { return e, nil },
	}
}

// TestRunStopsInOrder asks a process to stop while work is running: it is alive and not ready
// until the work has finished.
func TestRunStopsInOrder(t *testing.T) {
	e := &fakeEngine{running: make(chan struct{}), finish: make(chan struct{})}
	p := newTestProcess(t, e)
	ctx, stop := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- p.run(ctx) }()
	<-e.running
	url := "http://" + p.HealthAddress
	if code, text := get(t, url+"/readyz"); code != 200 {
		t.Errorf("at work /readyz says %d %q, want 200", code, text)
	}
	stop()
	for ready := 200; ready == 200; {
		ready, _ = get(t, url+"/readyz")
	}
	if code, _ := get(t, url+"/healthz"); code != 200 {
		t.Errorf("while work finishes /healthz says %d, want 200", code)
	}
	close(e.finish)
	if err := <-result; err != nil {
		t.Errorf("an ordered stop gives %v, want no error", err)
	}
}

func TestRunReturnsTheEnginesError(t *testing.T) {
	e := &fakeEngine{running: make(chan struct{}), finish: make(chan struct{}), err: errors.New("broken")}
	close(e.finish)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := newTestProcess(t, e).run(ctx); !errors.Is(err, e.err) {
		t.Errorf("got %v, want %v", err, e.err)
	}
}

func TestRunNeedsItsAddresses(t *testing.T) {
	p := newTestProcess(t, nil)
	p.PprofAddress = "256.0.0.1:1"
	if err := p.run(t.Context()); err == nil {
		t.Error("no error, want one that names --pprof-address")
	}
}

// chattyEngine logs as client-go's background work does, which has no logger of its own.
type chattyEngine struct{}

func (chattyEngine) Run(context.Context) error {
	klog.Background().Info("at work")
	return nil
}

func (chattyEngine) Ready() bool { return true }

func (chattyEngine) Warm(context.Context) {}

func (chattyEngine) Warmed() bool { return true }

func (chattyEngine) Close() {}

func (chattyEngine) Problems() []string { return nil }

func TestHooksOfTheProcessAreChecked(t *testing.T) {
	c := DefaultConfig()
	c.Kubeconfig = testKubeconfig(t)
	c.Hooks = map[string]Hook{"web": nil}
	want := `Config.Hooks: hook "web": expected a name and a hook`
	if _, err := newProcess(t.Context(), c, io.Discard); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestControllersOfTheProcessAreChecked(t *testing.T) {
	type unregistered struct{ corev1.ConfigMap }
	idle := func(name string) *controller.Controller[*corev1.ConfigMap] {
		return controller.New[*corev1.ConfigMap](name).Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](
			func(context.Context, *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
				return controller.Result{}, nil
			}))
	}
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"not registered": {
			func(c *Config) {
				c.Controllers = []controller.Declared{idle("a").Watch(controller.TypeOf[*unregistered]())}
			},
			`Config.Controllers: controller "a": type *server.unregistered: is not registered in the scheme; ` +
				"expected its AddToScheme to be called",
		},
		"one name twice": {
			func(c *Config) { c.Controllers = []controller.Declared{idle("a"), idle("a")} },
			`Config.Controllers: controller "a": two controllers have this name, expected one`,
		},
		"none": {
			func(c *Config) { c.ControllersOnly = true },
			"Config.ControllersOnly: Controllers is empty, expected a controller",
		},
		"a transport with the name of one of Hookloop's own": {
			func(c *Config) { c.Transports = hook.Openers{"grpc": unopened} },
			`Config.Transports: "grpc" is one of Hookloop's own transports, which has a field of its own`,
		},
		"a transport whose name is no word": {
			func(c *Config) { c.Transports = hook.Openers{"a+b": unopened} },
			`Config.Transports: got "a+b", expected at most 63 lower case letters, digits and hyphens such as nats`,
		},
		"a transport without an opener": {
			func(c *Config) { c.Transports = hook.Openers{"nats": nil} },
			`Config.Transports: "nats" has no opener, expected a hook.Opener`,
		},
		"hooks without their controllers": {
			func(c *Config) {
				c.ControllersOnly, c.Controllers = true, []controller.Declared{idle("a")}
				c.Hooks = map[string]Hook{"web": nil}
			},
			"Config.ControllersOnly: Hooks has hooks of declared controllers, expected none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := DefaultConfig()
			c.Kubeconfig = testKubeconfig(t)
			test.change(&c)
			if _, err := newProcess(t.Context(), c, io.Discard); err == nil || err.Error() != test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
		})
	}
}

// unopened is a transport that opens nothing.
func unopened(hook.Config) (*hook.Opened, error) { return nil, errors.New("not opened") }

// testKubeconfig is a file that names an API server that does not exist.
func testKubeconfig(t *testing.T) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c",` +
		`"context":{"cluster":"c"}}],` +
		`"clusters":[{"name":"c","cluster":{"server":"http://127.0.0.1:1"}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestTwoServersInOneProcess start and log at the same time; the race detector is the judge.
func TestTwoServersInOneProcess(t *testing.T) {
	kubeconfig := testKubeconfig(t)
	var wait sync.WaitGroup
	for range 2 {
		wait.Go(func() {
			c := DefaultConfig()
			c.Kubeconfig = kubeconfig
			c.MetricsAddress = "0"
			c.HealthAddress = "0"
			p, err := newProcess(t.Context(), c, io.Discard)
			if err != nil {
				t.Error(err)
				return
			}
			p.build = func(context.Context) (runner, error) { return chattyEngine{}, nil }
			if err := p.run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}
