// Package tracing tests the traces that users see in Jaeger: an engine and hooks as processes, a
// real control plane, a real Jaeger, and the audit log to prove that no write is missing from a
// trace.
//
// Tests of the spans' creation are beside the code. All tests share one cluster, one Jaeger and one
// engine, and use namespaces of their own. "make controlplane jaeger-build build" builds the
// programs first.
package tracing

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

func TestMain(m *testing.M) { cluster.Main(m) }

// traced is the label of the controllers that the engine with a Jaeger runs; other engines have
// their own labels.
const traced = "jaeger"

// quickly makes a process export its spans soon after they end.
const quickly = "OTEL_BSP_SCHEDULE_DELAY=200"

// shared is the engine that exports to the shared Jaeger. It dies with the test binary.
var shared struct {
	once   sync.Once
	engine *serve.Engine
	err    error
}

// start makes a Kit on a cluster with the traced engine.
func start(t *testing.T) (*kit.Kit, *jaeger.Jaeger) {
	t.Helper()
	j := jaeger.Start(t)
	k := kit.New(t)
	shared.once.Do(func() {
		installCRDs(k)
		shared.engine, shared.err = startEngine(t.Context(), k.Cluster, traced, append(j.Env(), quickly)...)
	})
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("hookloop's output:\n%s", shared.engine.Output())
		}
	})
	return k, j
}

func installCRDs(k *kit.Kit) {
	k.Helper()
	files, err := filepath.Glob(filepath.Join(cluster.Root(), "manifests", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		k.Fatalf("the CRDs' manifests are missing: %v", err)
	}
	for _, file := range files {
		k.ApplyFile(file)
	}
}

// startEngine runs an engine for the controllers with the label engine=name.
func startEngine(ctx context.Context, c *cluster.Cluster, name string, env ...string) (*serve.Engine, error) {
	return serve.Start(ctx, serve.Config{
		Kubeconfig: c.Kubeconfig(), Env: env, Flags: []string{"--target-label-selector=engine=" + name},
	})
}

// helloGRPC runs the hook of examples/hello-grpc and returns its address.
func helloGRPC(k *kit.Kit, env ...string) string {
	k.Helper()
	hook, address, err := serve.Hook(k.Context(), proc.Spec{
		Name: "hello-grpc", Path: serve.Program("hello-grpc"), Args: []string{"--listen", "127.0.0.1:0"},
		Env: append([]string{"OTEL_SERVICE_NAME=hello-grpc", quickly}, env...),
	})
	if hook != nil {
		k.Own(hook)
	}
	if err != nil {
		k.Fatal(err)
	}
	return address
}

// greetings declares the controller of examples/hello-grpc, for the engine with a name and for
// objects in the kit's group.
func greetings(k *kit.Kit, engine, address string) {
	k.Helper()
	k.CRD("Greeting", "Namespaced")
	k.Run(kit.Composite{
		Parent: "greetings", Sync: "grpc:" + address, Labels: map[string]any{"engine": engine},
		Children: []string{"v1/configmaps InPlace", "apps/v1/deployments InPlace", "v1/services InPlace", "v1/pods Recreate"},
	})
}

// greet creates the Greeting "hello", or changes its name, and waits until all children have it.
func greet(k *kit.Kit, who string) {
	k.Helper()
	k.Apply(
		"{apiVersion: $GROUP/v1, kind: Greeting, metadata: {name: hello, namespace: $NS}, " +
			"spec: {who: " + who + ", replicas: 1}}")
	k.Eventually("the Greeting is converged", func() error { return greets(k, who) })
}

// greets returns nil when the Greeting's status and all children have the greeting.
func greets(k *kit.Kit, who string) error {
	text := "Hello, " + who + "!"
	parent, err := k.Lookup("Greeting", "hello")
	if err != nil {
		return err
	}
	status, _ := parent.Object["status"].(map[string]any)
	if status["greeting"] != text || status["servers"] != int64(1) ||
		status["observedGeneration"] != parent.GetGeneration() {
		return fmt.Errorf("generation %d, its status is %v", parent.GetGeneration(), status)
	}
	for _, kind := range []string{"v1/ConfigMap", "apps/v1/Deployment", "v1/Service", "v1/Pod"} {
		child, err := k.Lookup(kind, "hello")
		if err != nil {
			return err
		}
		if child.GetDeletionTimestamp() != nil || kind != "v1/Service" && !strings.Contains(fmt.Sprint(child.Object), text) {
			return fmt.Errorf("the %s does not have %q yet", kind, text)
		}
	}
	return nil
}
