package manifests

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/kubelet"
	"github.com/hookloop/hookloop/test/serve"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// account is the engine's user in the production base.
const account = "system:serviceaccount:" + system + ":hookloop"

// TestProductionRights installs the production base and the role of the example hello-webhook. It
// runs the engine as the base's ServiceAccount with the Deployment's arguments. A HelloWorld is
// created, changed, repaired and deleted. Nothing may be forbidden.
func TestProductionRights(t *testing.T) {
	k := kit.New(t)
	base := kustomize(t, "production")
	k.Apply(base)
	example := filepath.Join(cluster.Root(), "examples", "hello-webhook")
	k.ApplyFile(filepath.Join(example, "crd.yaml"))
	k.ApplyFile(filepath.Join(example, "rbac.yaml"))
	awaitRights(k)
	awaitPods(k)

	mark := k.Mark()
	engine := startEngine(t, k, base)
	declareHello(t, k, example)
	runKubelet(t, k)
	helloStory(k)

	stop(t, engine)
	checkRefusals(t, k, engine, mark)
}

// awaitRights waits until the control plane has aggregated the labelled roles and the API server
// knows the result.
func awaitRights(k *kit.Kit) {
	k.Helper()
	for _, right := range [][]string{
		{"-n", system, "create", "configmaps"}, {"-n", system, "patch", "configmaps/hookloop-finalizers"},
		{"--all-namespaces", "watch", "compositecontrollers.metacontroller.k8s.io"},
		{"--all-namespaces", "watch", "helloworlds.example.com"},
	} {
		k.Eventually("the engine may "+strings.Join(right, " "), func() error {
			_, err := k.Cluster.Kubectl(k.Context(), append([]string{"auth", "can-i", "--as=" + account}, right...)...)
			return err
		})
	}
}

// awaitPods waits for the Pods of the Deployment: its namespace admits them.
func awaitPods(k *kit.Kit) {
	k.Helper()
	k.Eventually("the Deployment has its two Pods", func() error {
		out, err := k.Cluster.Kubectl(k.Context(), "get", "pods", "-n", system, "-l",
			"app.kubernetes.io/name=hookloop", "-o", "name")
		if n := strings.Count(out, "pod/"); err == nil && n != 2 {
			err = fmt.Errorf("there are %d", n)
		}
		return err
	})
}

// startEngine runs the engine like the base, but outside of the cluster.
func startEngine(t *testing.T, k *kit.Kit, base string) *serve.Engine {
	t.Helper()
	kubeconfig, err := k.Cluster.ServiceAccountKubeconfig(t.Context(), system, "hookloop")
	if err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{}
	into(t, workload(t, objects(t, base)).Object, deployment)
	args := deployment.Spec.Template.Spec.Containers[0].Args
	if args[0] != "serve" {
		t.Fatalf("the Deployment's arguments are %q, want serve first", args)
	}
	flags := append(slices.Clone(args[1:]), "--leader-election-namespace="+system)
	engine, err := serve.Start(t.Context(), serve.Config{Kubeconfig: kubeconfig, Flags: flags})
	if engine != nil {
		k.Own(engine.Process)
	}
	if err != nil {
		t.Fatal(err)
	}
	return engine
}

// declareHello starts the example's hook, and declares its controller with the hook's address.
func declareHello(t *testing.T, k *kit.Kit, example string) {
	t.Helper()
	hook, address, err := serve.Hook(t.Context(), proc.Spec{
		Name: "hello-webhook", Path: "python3", Args: []string{filepath.Join(example, "hook.py"), "--port", "0"},
	})
	if hook != nil {
		k.Own(hook)
	}
	if err != nil {
		t.Fatal(err)
	}
	controller, err := os.ReadFile(filepath.Join(example, "controller.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	k.Apply(strings.ReplaceAll(string(controller), "http://127.0.0.1:8080", address))
	k.Cleanup(func() { k.Delete(kit.CompositeController, "hello-webhook") })
	k.ApplyFile(filepath.Join(example, "hello.yaml"))
}

// runKubelet makes Pods ready.
func runKubelet(t *testing.T, k *kit.Kit) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- kubelet.Run(ctx, k.Cluster.Admin(), func(err error) { t.Log("stand-in kubelet:", err) })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

const (
	helloWorld = "example.com/v1/HelloWorld"
	hello      = "hello-webhook"
)

// helloStory runs a HelloWorld from creation to deletion.
func helloStory(k *kit.Kit) {
	k.Helper()
	awaitStatus(k, "Hello, World!")
	k.Patch(helloWorld, hello, "spec: {who: you}")
	awaitStatus(k, "Hello, you!")
	service := k.Get("v1/Service", hello).GetUID()
	k.Delete("v1/Service", hello)
	k.Eventually("the Service comes back", func() error {
		o, err := k.Lookup("v1/Service", hello)
		if err == nil && o.GetUID() == service {
			err = errors.New("it is still the old one")
		}
		return err
	})
	k.Delete(helloWorld, hello)
	k.Eventually("the parent goes; its children are the garbage collector's business", func() error {
		if k.Find(helloWorld, hello) != nil {
			return errors.New("it is still there")
		}
		return nil
	})
}

// awaitStatus waits until the HelloWorld's status has the greeting, and its children and Pods are
// ready.
func awaitStatus(k *kit.Kit, greeting string) {
	k.Helper()
	k.Eventually("status: "+greeting, func() error {
		o, err := k.Lookup(helloWorld, hello)
		if err != nil {
			return err
		}
		status, _, _ := unstructured.NestedMap(o.Object, "status")
		want := map[string]any{"greeting": greeting, "children": int64(4), "ready": "1/1"}
		got := map[string]any{"greeting": status["greeting"], "children": status["children"], "ready": status["ready"]}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("status (-want +got):\n%s", diff)
		}
		return nil
	})
}

// stop ends the engine in order, after a check of its metrics: they count every response of the API
// server.
func stop(t *testing.T, engine *serve.Engine) {
	t.Helper()
	metrics, err := serve.Fetch(t.Context(), "http://"+engine.Metrics+"/metrics")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(metrics, "\n") {
		if strings.HasPrefix(line, "rest_client_requests_total") && strings.Contains(line, `code="403"`) {
			t.Errorf("the API server has refused something: %s", line)
		}
	}
	if err := errors.Join(engine.Stop(30*time.Second), engine.Err()); err != nil {
		t.Errorf("SIGTERM ends it with %v, want exit code 0", err)
	}
}

// checkRefusals searches the log and the audit log, which must contain the account, for forbidden
// requests.
func checkRefusals(t *testing.T, k *kit.Kit, engine *serve.Engine, since cluster.Mark) {
	t.Helper()
	for line := range strings.SplitSeq(engine.Output(), "\n") {
		if strings.Contains(strings.ToLower(line), "forbidden") {
			t.Errorf("the log has: %s", line)
		}
	}
	writes, err := k.Cluster.Writes(since)
	if err != nil {
		t.Fatal(err)
	}
	mine := 0
	for _, w := range writes {
		if w.User != account {
			continue
		}
		mine++
		if w.Code == 403 {
			t.Errorf("forbidden: %s", w)
		}
	}
	if mine == 0 {
		t.Errorf("the audit log has no write of %s", account)
	}
}
