package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/util/wait"
)

// own is the label of controllers that a test runs with an engine of its own.
const own = "engine=own"

// shared holds the processes that the tests of this binary share in addition to the cluster: an
// engine in this process, and a hook in another.
var shared struct {
	engine sync.Once
	stop   context.CancelFunc
	ended  chan error

	mirror sync.Once
	hook   *proc.Process
	url    string

	// sockets is the folder in which the engine's hooks may listen on unix sockets.
	sockets string
}

// tests runs the tests and then stops the shared processes.
type tests struct{ *testing.M }

// Run returns the exit code.
func (m tests) Run() int {
	before := goleak.IgnoreCurrent()
	code := m.M.Run()
	if err := stopShared(before); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// stopShared stops the engine, which must leave no goroutine behind.
func stopShared(before goleak.Option) error {
	if shared.hook != nil {
		if err := shared.hook.Kill(); err != nil {
			return err
		}
	}
	if shared.stop == nil {
		return nil
	}
	if err := os.RemoveAll(shared.sockets); err != nil {
		return err
	}
	shared.stop()
	if err := <-shared.ended; err != nil {
		return fmt.Errorf("the engine has ended with: %w", err)
	}
	return goleak.Find(before,
		// The cluster still runs; client-go keeps connections to it for the whole process.
		goleak.IgnoreAnyFunction("github.com/hookloop/hookloop/internal/proc.(*Process).start.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"),
	)
}

// start makes a Kit on the cluster with the shared engine.
func start(t *testing.T) *kit.Kit {
	t.Helper()
	parallel(t)
	return kit.New(t)
}

// parallel runs the test beside other parallel tests. The shared engine starts before the first of
// them, because it sets loggers and metrics of the whole process, which the tests' own clients use.
func parallel(t *testing.T) {
	t.Helper()
	shared.engine.Do(func() { startEngine(t) })
	t.Parallel()
}

// startEngine starts the shared engine and returns when it is ready.
func startEngine(t *testing.T) {
	t.Helper()
	admin := cluster.Start(t)
	installCRDs(t.Context(), t, admin)
	ports, err := cluster.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	c := server.DefaultConfig()
	c.Version, c.Kubeconfig, c.TargetSelector = "test", admin.Kubeconfig(), "engine!=own"
	c.ClientQPS, c.MetricsAddress, c.HealthAddress = -1, "0", fmt.Sprintf("127.0.0.1:%d", ports[0])
	c.Log.Level = "error"
	c.Hooks = hooksInProcess
	c.Transports = hook.Openers{"letter": openLetter}
	shared.sockets, err = os.MkdirTemp("", "sockets")
	if err != nil {
		t.Fatal(err)
	}
	c.HookSocketFolders = []string{shared.sockets}
	var ctx context.Context
	ctx, shared.stop = context.WithCancel(context.Background())
	shared.ended = make(chan error, 1)
	go func() { shared.ended <- server.Run(ctx, c) }()
	ready := func(ctx context.Context) (bool, error) {
		_, err := serve.Fetch(ctx, "http://"+c.HealthAddress+"/readyz")
		return err == nil, nil
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, kit.Deadline, true, ready); err != nil {
		t.Fatalf("the engine is not ready: %v", err)
	}
}

// mirror returns the URL of a hook in another process. The hook answers the parent's spec.answer.
func mirror(t *testing.T) string {
	t.Helper()
	shared.mirror.Do(func() {
		script := filepath.Join(cluster.Root(), "test", "integration", "testdata", "mirror.py")
		hook, err := proc.Start(proc.Spec{Name: "mirror.py", Path: "python3", Args: []string{"-u", script}})
		if err != nil {
			t.Fatal(err)
		}
		shared.hook = hook
		if err := hook.Await(t.Context(), func(context.Context) error {
			_, err := fmt.Sscan(hook.Output(), &shared.url)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	})
	return shared.url
}

// settled is the time without writes after which the next step of a story begins.
const settled = 700 * time.Millisecond

func sorted(lines []string) []string { return slices.Sorted(slices.Values(lines)) }
