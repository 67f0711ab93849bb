package integration

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// served is one process "hookloop serve", for controllers that no test declares.
type served struct{ *serve.Engine }

func startServed(ctx context.Context, t *testing.T, c *cluster.Cluster, flags ...string) served {
	t.Helper()
	e, err := serve.Start(ctx, serve.Config{
		Kubeconfig: c.Kubeconfig(), Flags: append([]string{"--target-label-selector=engine=none"}, flags...),
	})
	if e != nil {
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("hookloop's output:\n%s", e.Output())
			}
			_ = e.Kill() // it may have ended already
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return served{e}
}

// await waits until /readyz answers with text.
func (s served) await(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	err := s.Await(ctx, func(ctx context.Context) error {
		body, err := serve.Fetch(ctx, "http://"+s.Health+"/readyz")
		if err == nil && strings.TrimSpace(body) != text {
			err = fmt.Errorf("/readyz returned %q", body)
		}
		return err
	})
	if err != nil {
		t.Fatalf("waiting for %q: %v", text, err)
	}
}

// stop sends SIGTERM, and expects exit code 0.
func (s served) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(s.Stop(30*time.Second), s.Err()); err != nil {
		t.Errorf("SIGTERM ends it with %v, want exit code 0", err)
	}
}

// installCRDs installs the kinds of the controllers in the cluster.
func installCRDs(ctx context.Context, t *testing.T, c *cluster.Cluster) {
	t.Helper()
	crds := filepath.Join(cluster.Root(), "manifests", "crds")
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", crds},
		{"wait", "--for=condition=Established", "--timeout=30s", "-f", crds},
	} {
		if out, err := c.Kubectl(ctx, args...); err != nil {
			t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// TestServeStartsAndStops runs the binary: ready when its caches are, metrics of every family, exit
// code 0 after SIGTERM.
func TestServeStartsAndStops(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	s := startServed(ctx, t, c)
	s.await(ctx, t, "ok")
	text, err := serve.Fetch(ctx, "http://"+s.Metrics+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`hookloop_cache_objects{resource="compositecontrollers.metacontroller.k8s.io/v1alpha1"} `,
		`rest_client_requests_total{code="200",`, `workqueue_depth{name="supervisor"}`, "go_goroutines ",
		"process_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	s.stop(t)
}

// TestServeElectsALeader runs two replicas: one works, and the other waits and takes over when the
// first is stopped.
func TestServeElectsALeader(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	flags := []string{"--leader-election", "--leader-election-namespace=default", "--leader-election-id=serve-test"}
	first := startServed(ctx, t, c, flags...)
	first.await(ctx, t, "ok")
	second := startServed(ctx, t, c, flags...)
	second.await(ctx, t, "standing by for leadership; caches are filled")
	first.stop(t)
	second.await(ctx, t, "ok")
}
