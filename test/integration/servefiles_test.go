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
	t.Run("serve -f, two replicas", func(t *testing.T) { serveFilesTwice(ctx, t, bare) })
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

// helloFiles is the example hello-webhook with its controller in a folder, which is a symbolic link
// to a release, as with git-sync.
type helloFiles struct {
	*bareCluster
	t *testing.T
	// good is the text of the controller.
	dir, good string
	releases  int
}

// newHelloFiles runs the hook and writes the folder. Parents have the name hello-webhook.
func newHelloFiles(ctx context.Context, t *testing.T, b *bareCluster) *helloFiles {
	t.Helper()
	example := filepath.Join(cluster.Root(), "examples", "hello-webhook")
	hook, address, err := serve.Hook(ctx, proc.Spec{
		Name: "hook.py", Path: "python3", Args: []string{"-u", filepath.Join(example, "hook.py"), "--port", "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hook.Kill() })
	text, err := os.ReadFile(filepath.Join(example, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	f := &helloFiles{
		bareCluster: b, t: t, dir: filepath.Join(t.TempDir(), "current"),
		good: strings.ReplaceAll(string(text), "http://127.0.0.1:8080", address),
	}
	f.release(f.good)
	b.kubectl(ctx, "apply", "-f", filepath.Join(example, "crd.yaml"))
	return f
}

// release writes the controller into a new folder, and makes the folder of the controller lead
// there.
func (f *helloFiles) release(text string) {
	f.t.Helper()
	f.releases++
	name := fmt.Sprintf("release-%d", f.releases)
	release := filepath.Join(filepath.Dir(f.dir), name)
	next := f.dir + ".next"
	if err := os.Mkdir(release, 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(release, "controller.yaml"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Symlink(name, next); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(next, f.dir); err != nil {
		f.t.Fatal(err)
	}
}

// write changes the controller in place.
func (f *helloFiles) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.dir, "controller.yaml"), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// serve runs "hookloop serve -f" with further flags.
func (f *helloFiles) serve(ctx context.Context, flags ...string) *serve.Engine {
	f.t.Helper()
	e, err := serve.Start(ctx, serve.Config{
		Kubeconfig: f.cluster.Kubeconfig(), Flags: append([]string{"-f", f.dir}, flags...),
	})
	if e != nil {
		f.t.Cleanup(func() { _ = e.Kill() })
	}
	if err != nil {
		f.t.Fatalf("the engine is not ready: %v", err)
	}
	return e
}

// greeted sets the parent's name to greet, and waits for the greeting.
func (f *helloFiles) greeted(ctx context.Context, who string) {
	f.t.Helper()
	f.kubectl(ctx, "patch", "helloworld", "hello-webhook", "--type=merge", "-p", `{"spec":{"who":"`+who+`"}}`)
	f.kubectl(ctx, "wait", "--for=jsonpath={.status.greeting}=Hello, "+who+"!", "--timeout=60s",
		"helloworld/hello-webhook")
}

// logs returns a condition: the log of an engine has lines.
func logs(e *serve.Engine, lines ...string) func() error {
	return func() error {
		for _, line := range lines {
			if !strings.Contains(e.Output(), line) {
				return fmt.Errorf("the log has no %q:\n%s", line, e.Output())
			}
		}
		return nil
	}
}

// serveFiles runs "hookloop serve -f", and changes the file: a fault keeps the controller, a
// rolling update is refused with the reason, and the next good file is taken.
func serveFiles(ctx context.Context, t *testing.T, b *bareCluster) {
	f := newHelloFiles(ctx, t, b)
	write := f.write
	good := f.good
	e := f.serve(ctx)
	b.kubectl(ctx, "apply", "-f", filepath.Join(cluster.Root(), "examples", "hello-webhook", "hello.yaml"))
	b.kubectl(ctx, "wait", "--for=jsonpath={.status.greeting}=Hello, World!", "--timeout=60s", "helloworld/hello-webhook")
	logged := func(lines ...string) func() error { return logs(e, lines...) }
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
	f.greeted(ctx, "you")
}

// serveFilesTwice runs two replicas of "hookloop serve -f". The second one waits to lead with
// filled caches, follows the folder meanwhile, which is replaced, and takes over when the first one
// dies.
func serveFilesTwice(ctx context.Context, t *testing.T, b *bareCluster) {
	f := newHelloFiles(ctx, t, b)
	const lease = "files"
	flags := []string{"--leader-election", "--leader-election-namespace=default", "--leader-election-id=" + lease}
	leader := f.serve(ctx, flags...)
	b.kubectl(ctx, "apply", "-f", filepath.Join(cluster.Root(), "examples", "hello-webhook", "hello.yaml"))
	f.greeted(ctx, "leader")
	next := f.serve(ctx, flags...)
	if text, err := serve.Fetch(ctx, "http://"+next.Health+"/readyz"); err != nil ||
		text != "standing by for leadership; caches are filled\n" {
		t.Errorf("/readyz of the standby has %q, %v", text, err)
	}
	text, err := serve.Fetch(ctx, "http://"+next.Metrics+"/metrics")
	for _, line := range []string{
		`leader_election_master_status{name="` + lease + `"} 0`,
		`hookloop_cache_objects{resource="helloworlds.example.com/v1"} 1`,
	} {
		if err != nil || !strings.Contains(text, line+"\n") {
			t.Errorf("/metrics of the standby has no %s, %v", line, err)
		}
	}
	f.release(strings.Replace(f.good, "name: hello-webhook", "name: renamed", 1))
	b.await(ctx, t, "the leader runs the new file", logs(leader, "Started controller: renamed"))
	b.await(ctx, t, "the standby has read the new file", logs(next, "the controllers were read again"))
	if err := leader.Kill(); err != nil {
		t.Fatal(err)
	}
	b.kubectl(ctx, "-n", "default", "patch", "lease", lease, "--type=merge", "-p", `{"spec":{"holderIdentity":""}}`)
	f.greeted(ctx, "heir")
	const started = "Started controller: "
	if log := next.Output(); strings.Count(log, started) != 1 || !strings.Contains(log, started+"renamed") {
		t.Errorf("the new leader has started other controllers than the renamed one:\n%s", log)
	}
}
