package memapi_test

import (
	"context"
	"flag"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/controllertest"
	"github.com/hookloop/hookloop/internal/memapi"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/cluster"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// TestEngine runs the whole engine with a composite controller, unmodified, against the API server
// in memory: it creates the child, writes the status, restores the child, updates it, and the child
// goes with its parent. A real API server gets the same requests.
func TestEngine(t *testing.T) {
	memory, err := memapi.New(memapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(memory)
	t.Cleanup(listener.Close)
	t.Cleanup(memory.Close)
	for name, config := range map[string]*rest.Config{
		"in memory": {Host: listener.URL, QPS: -1}, "real": cluster.Start(t).Admin(),
	} {
		t.Run(name, func(t *testing.T) { runEngine(t, config) })
	}
}

func runEngine(t *testing.T, config *rest.Config) {
	p := newPlayer(t, config, "engine")
	definitions := "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	crds, err := filepath.Glob("../../manifests/crds/metacontroller*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(crds, "testdata/engine/notes.yaml") {
		must(t, p, step{do: definitions, body: readJSON(t, file)}, 201)
	}
	eventually(t, p, step{do: "GET /apis/metacontroller.k8s.io/v1alpha1/compositecontrollers"}, "items")
	must(t, p, step{do: "POST /api/v1/namespaces", body: `{"metadata":{"name":"engine"}}`}, 201)
	startEngine(t, config)
	must(t, p, step{
		do:   "POST /apis/metacontroller.k8s.io/v1alpha1/compositecontrollers",
		body: readJSON(t, "testdata/engine/controller.yaml"),
	}, 201)
	notes := "/apis/memapi.example.com/v1/namespaces/engine/notes"
	child := "/api/v1/namespaces/engine/configmaps/a"
	note := `{"apiVersion":"memapi.example.com/v1","kind":"Note","metadata":{"name":"a"},"spec":{"text":"one"}}`
	eventually(t, p, step{do: "POST " + notes, body: note}, `"generation"`)
	eventually(t, p, step{do: "GET " + child}, `"text": "one"`)
	eventually(t, p, step{do: "GET " + notes + "/a"}, `"length": 3`)
	must(t, p, step{do: "DELETE " + child}, 200)
	eventually(t, p, step{do: "GET " + child}, `"text": "one"`)
	must(t, p, step{do: "PATCH " + notes + "/a", kind: "merge", body: `{"spec":{"text":"three"}}`}, 200)
	eventually(t, p, step{do: "GET " + child}, `"text": "three"`)
	eventually(t, p, step{do: "GET " + notes + "/a"}, `"length": 5`)
	must(t, p, step{do: "DELETE " + notes + "/a", body: `{"propagationPolicy":"Background"}`}, 200)
	eventually(t, p, step{do: "GET " + child}, `"NotFound"`)
}

// startEngine runs the engine in this process until the test ends.
func startEngine(t *testing.T, config *rest.Config) {
	t.Helper()
	c := server.DefaultConfig()
	c.Version = "test"
	c.MetricsAddress = "0"
	c.HealthAddress = "0"
	c.LeaderElection.Enabled = false
	c.Hooks = map[string]server.Hook{"notes": hook.Composite{Sync: syncNote}}
	c.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(config, c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx, c) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the engine = %v", err)
		}
	})
}

// syncNote makes a ConfigMap of a note.
func syncNote(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
	note, err := hook.Parent[struct {
		Spec struct {
			Text string `json:"text"`
		} `json:"spec"`
	}](req)
	if err != nil {
		return nil, err
	}
	page := map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": req.Parent.Name},
		"data": map[string]any{"text": note.Spec.Text},
	}
	return &hook.SyncResponse{
		Status: map[string]any{"length": len(note.Spec.Text)}, Children: []hook.Child{{Object: page}},
	}, nil
}

func readJSON(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out, err := yaml.YAMLToJSON(data)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return string(out)
}

func must(t *testing.T, p *player, s step, code int) {
	t.Helper()
	if got := p.play(s); got.Code != code {
		t.Fatalf("%s = %s, want %d", s.do, got.text(), code)
	}
}

// eventually repeats a request until its answer contains a text.
func eventually(t *testing.T, p *player, s step, text string) {
	t.Helper()
	var got string
	if !await(t, func() bool {
		got = p.play(s).text()
		return strings.Contains(got, text)
	}) {
		t.Fatalf("%s = %s, want %s in it", s.do, got, text)
	}
}

// TestControllersOnBoth runs one test of a controller in memory and on a real control plane.
func TestControllersOnBoth(t *testing.T) {
	const kubeconfig = "controllertest.kubeconfig"
	t.Run("in memory", testGreetings)
	if err := flag.Set(kubeconfig, cluster.Start(t).Kubeconfig()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = flag.Set(kubeconfig, "") }()
	t.Run("real", testGreetings)
}

func testGreetings(t *testing.T) {
	greets := controller.New[*corev1.ConfigMap]("greets").Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](
		func(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
			if req.Object == nil || req.Object.Data["name"] == "" || req.Object.Data["greeting"] != "" {
				return controller.Result{}, nil
			}
			req.Object.Data["greeting"] = "hello, " + req.Object.Data["name"]
			return controller.Result{}, req.Update(ctx, req.Object)
		}))
	anna := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "greetings", Name: "anna"}}
	anna.Data = map[string]string{"name": "anna"}
	env := controllertest.New(t, controllertest.Options{Objects: []controllertest.Object{anna}})
	env.RunPaused(greets)
	for env.Step() != "" {
		t.Helper()
	}
	key := controllertest.KeyOf(anna)
	if got := controllertest.Get[*corev1.ConfigMap](env, key).Data["greeting"]; got != "hello, anna" {
		t.Errorf("greeting %q after the steps", got)
	}
	controllertest.Update(env, key, func(m *corev1.ConfigMap) { m.Data = map[string]string{"name": "bob"} })
	env.UntilQuiet(t.Context())
	if got := controllertest.Get[*corev1.ConfigMap](env, key).Data["greeting"]; got != "hello, bob" {
		t.Errorf("greeting %q when quiet", got)
	}
	writes := 0
	for _, w := range env.Audit() {
		if w.By == "controllers" && w.Changed && w.Resource == "configmaps" {
			writes++
		}
	}
	if writes != 2 {
		t.Errorf("%d writes of the controller, want 2", writes)
	}
	controllertest.Delete[*corev1.ConfigMap](env, key)
}
