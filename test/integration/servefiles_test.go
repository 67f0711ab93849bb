package integration

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/util/wait"
)

// TestWithoutCRDs runs controllers of files on a cluster that has no CRD of Hookloop.
func TestWithoutCRDs(t *testing.T) {
	parallel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c, err := cluster.New(ctx, cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	bare := &bareCluster{t, c}
	t.Run("dev webhook", func(t *testing.T) { devWebhook(ctx, t, bare) })
	t.Run("dev gRPC", func(t *testing.T) { devGRPC(ctx, t, bare) })
	t.Run("dev faults", func(t *testing.T) { devFaults(ctx, t, bare) })
	t.Run("dev rights", func(t *testing.T) { devRights(ctx, t, bare) })
	t.Run("dev tenant", func(t *testing.T) { devTenant(ctx, t, bare) })
	t.Run("serve -f", func(t *testing.T) { serveFiles(ctx, t, bare) })
	if crds := bare.kubectl(ctx, "get", "crds", "-o", "name"); strings.Contains(crds, "metacontroller") {
		t.Errorf("the cluster has CRDs of Hookloop: %s", crds)
	}
}

// bareCluster is a cluster without Hookloop's CRDs.
type bareCluster struct {
	t       *testing.T
	cluster *cluster.Cluster
}

func (b *bareCluster) kubectl(ctx context.Context, args ...string) string {
	b.t.Helper()
	out, err := b.cluster.Kubectl(ctx, args...)
	if err != nil {
		b.t.Fatalf("kubectl %v: %v\n%s", args, err, out)
	}
	return out
}

// await waits until condition returns nil.
func (b *bareCluster) await(ctx context.Context, t *testing.T, what string, condition func() error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, kit.Deadline, true, func(context.Context) (bool, error) {
		last = condition()
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}

// serveFiles runs "hookloop serve -f", and changes the file: a fault keeps the controller, a
// rolling update is refused with the reason, and the next good file is taken.
func serveFiles(ctx context.Context, t *testing.T, b *bareCluster) {
	example := filepath.Join(cluster.Root(), "examples", "hello-webhook")
	hook, address, err := serve.Hook(ctx, proc.Spec{
		Name: "hook.py", Path: "python3", Args: []string{"-u", filepath.Join(example, "hook.py"), "--port", "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer hook.Kill() //nolint:errcheck // the test is over
	text, err := os.ReadFile(filepath.Join(example, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	good := strings.ReplaceAll(string(text), "http://127.0.0.1:8080", address)
	dir := t.TempDir()
	write := func(text string) {
		if err := os.WriteFile(filepath.Join(dir, "controller.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	b.kubectl(ctx, "apply", "-f", filepath.Join(example, "crd.yaml"))
	e, err := serve.Start(ctx, serve.Settings{Kubeconfig: b.cluster.Kubeconfig(), Flags: []string{"-f", dir}})
	if e != nil {
		defer e.Kill() //nolint:errcheck // the test is over
	}
	if err != nil {
		t.Fatalf("the engine is not ready: %v", err)
	}
	b.kubectl(ctx, "apply", "-f", filepath.Join(example, "hello.yaml"))
	b.kubectl(ctx, "wait", "--for=jsonpath={.status.greeting}=Hello, World!", "--timeout=60s", "helloworld/hello-webhook")
	logged := func(lines ...string) func() error {
		return func() error {
			for _, line := range lines {
				if !strings.Contains(e.Output(), line) {
					return fmt.Errorf("the log has no %q:\n%s", line, e.Output())
				}
			}
			return nil
		}
	}
	write(good + "  nonsense: true\n")
	b.await(ctx, t, "a wrong file", logged("controller.yaml:", "the controllers stay as they were"))
	write(strings.Replace(good, "method: InPlace", "method: RollingInPlace", 1))
	b.await(ctx, t, "a rolling update", logged("spec.childResources[0].updateStrategy.method: a rolling update keeps its "+
		"progress in ControllerRevisions, which the API server does not serve"))
	write(good)
	b.await(ctx, t, "the good file", func() error {
		if strings.Count(e.Output(), "Started controller: hello-webhook") != 2 {
			return fmt.Errorf("the controller was not started again:\n%s", e.Output())
		}
		return nil
	})
	b.kubectl(ctx, "patch", "helloworld", "hello-webhook", "--type=merge", "-p", `{"spec":{"who":"you"}}`)
	b.kubectl(ctx, "wait", "--for=jsonpath={.status.greeting}=Hello, you!", "--timeout=60s", "helloworld/hello-webhook")
}
