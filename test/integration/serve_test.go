package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/proc"
)

// buildHookloop builds the command into a folder of the test.
func buildHookloop(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "hookloop")
	cmd := exec.Command("go", "build", "-o", binary, "./cmd/hookloop")
	cmd.Dir = cluster.Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// served is one "hookloop serve" under test.
type served struct {
	*proc.Process
	health, metrics string
}

// serve starts the binary against the cluster, with its addresses on free ports. The test's end kills it.
func serve(t *testing.T, c *cluster.Cluster, binary string, flags ...string) *served {
	t.Helper()
	ports, err := cluster.FreePorts(2)
	if err != nil {
		t.Fatal(err)
	}
	health, metrics := fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	process, err := proc.Start(proc.Spec{Name: "hookloop", Path: binary, Args: append([]string{
		"serve", "--kubeconfig=" + c.Kubeconfig(), "--health-probe-bind-address=" + health, "--metrics-address=" + metrics,
		"--target-label-selector=engine=none", // the shared engine runs what tests declare
	}, flags...)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("hookloop said:\n%s", process.Output())
		}
		_ = process.Kill() // it may have ended by itself
	})
	return &served{process, "http://" + health, "http://" + metrics}
}

// await waits until /readyz answers with text.
func (s *served) await(ctx context.Context, t *testing.T, text string) {
	t.Helper()
	err := s.Await(ctx, func(ctx context.Context) error {
		code, body, err := fetch(ctx, s.health+"/readyz")
		if err == nil && (code != http.StatusOK || strings.TrimSpace(body) != text) {
			err = fmt.Errorf("/readyz says %d %q", code, body)
		}
		return err
	})
	if err != nil {
		t.Fatalf("waiting for %q: %v", text, err)
	}
}

// stop asks it to stop, which must end with exit code 0.
func (s *served) stop(t *testing.T) {
	t.Helper()
	if err := errors.Join(s.Stop(30*time.Second), s.Err()); err != nil {
		t.Errorf("SIGTERM ends it with %v, want exit code 0", err)
	}
}

func fetch(ctx context.Context, url string) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close() //nolint:errcheck // it was read to its end
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}

// installCRDs makes the cluster know the declaring resources.
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

// TestServeStartsAndStops runs the binary: ready when its caches are, metrics of every family, exit code 0 after SIGTERM.
func TestServeStartsAndStops(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	s := serve(t, c, buildHookloop(t))
	s.await(ctx, t, "ok")
	_, text, err := fetch(ctx, s.metrics+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`hookloop_cache_objects{resource="compositecontrollers.metacontroller.k8s.io/v1alpha1"} `,
		`rest_client_requests_total{code="200",`, `workqueue_depth{name="supervisor"}`, "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	s.stop(t)
}

// TestServeElectsALeader runs two replicas: one works, the other stands by and takes over when the first is stopped.
func TestServeElectsALeader(t *testing.T) {
	c := cluster.Start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	installCRDs(ctx, t, c)
	binary := buildHookloop(t)
	flags := []string{"--leader-election", "--leader-election-namespace=default", "--leader-election-id=serve-test"}
	first := serve(t, c, binary, flags...)
	first.await(ctx, t, "ok")
	second := serve(t, c, binary, flags...)
	second.await(ctx, t, "standing by for leadership")
	first.stop(t)
	second.await(ctx, t, "ok")
}
