package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/server"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// goProcess is a run of the server with controllers in Go.
type goProcess struct {
	k *kit.Kit
	server.Config
	cancel context.CancelFunc
	ended  chan error
}

// runServer runs a server in this process until stop is called or the test ends.
func runServer(k *kit.Kit, c server.Config) *goProcess {
	k.Helper()
	ports, err := cluster.FreePorts(2)
	if err != nil {
		k.Fatal(err)
	}
	c.HealthAddress, c.MetricsAddress = fmt.Sprintf("127.0.0.1:%d", ports[0]), fmt.Sprintf("127.0.0.1:%d", ports[1])
	c.Version = "test"
	c.ClientQPS = -1
	c.Log.Level = "error"
	if c.Kubeconfig == "" {
		c.Kubeconfig = k.Cluster.Kubeconfig()
	}
	p := &goProcess{k: k, Config: c, ended: make(chan error, 1)}
	var ctx context.Context
	ctx, p.cancel = context.WithCancel(context.Background())
	go func() { p.ended <- server.Run(ctx, c) }()
	k.Cleanup(p.stop)
	return p
}

// stop stops the server, which must end without an error.
func (p *goProcess) stop() {
	p.cancel()
	if p.ended == nil {
		return
	}
	if err := <-p.ended; err != nil {
		p.k.Errorf("the server ends with %v", err)
	}
	p.ended = nil
}

// answers waits until /readyz has a text.
func (p *goProcess) answers(text string) {
	p.k.Helper()
	p.k.Eventually("/readyz has "+text, func() error {
		got, err := serve.Fetch(p.k.Context(), "http://"+p.HealthAddress+"/readyz")
		if err == nil && !strings.Contains(got, text) {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// copyController is a controller that copies the ConfigMaps with a label. The copy has the text of
// the ConfigMap that data.from names, if there is one.
func copyController(k *kit.Kit) *controller.Controller[*corev1.ConfigMap] {
	wanted := func(o *corev1.ConfigMap) bool { return o.Namespace == k.Namespace && o.Labels["copy"] == "yes" }
	reconcile := func(ctx context.Context, req *controller.Request[*corev1.ConfigMap]) (controller.Result, error) {
		if req.Object == nil {
			return controller.Result{}, nil
		}
		text := req.Object.Data["text"]
		from, err := controller.Get[*corev1.ConfigMap](req, controller.Key{
			Namespace: k.Namespace, Name: req.Object.Data["from"],
		})
		switch {
		case err == nil:
			text = from.Data["text"]
		case !controller.IsNotFound(err):
			return controller.Result{}, err
		}
		target := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: req.Key.Name + "-copy"},
			Data:       map[string]string{"text": text},
		}
		if err := req.Own(req.Object, target); err != nil {
			return controller.Result{}, err
		}
		return controller.Result{}, req.Apply(ctx, target)
	}
	return controller.New[*corev1.ConfigMap]("copies-" + k.Name).Where(wanted).
		Reconciler(controller.ReconcileFunc[*corev1.ConfigMap](reconcile))
}

const copiedManifest = `
apiVersion: v1
kind: ConfigMap
metadata: {name: %s, namespace: $NS, labels: {copy: "yes"}}
data: {text: one, from: source}`

// TestControllersBesideHooks runs a declared controller with a hook and controllers in Go in one
// process. One of the latter waits for its kind and then runs; the others work meanwhile.
func TestControllersBesideHooks(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	k.CRD("Page", "Namespaced")
	late := schema.GroupVersionKind{Group: k.Group, Version: "v1", Kind: "Late"}
	marks := controller.NewFor("late-"+k.Name, late).Reconciler(
		controller.ReconcileFunc[*unstructured.Unstructured](func(
			ctx context.Context, req *controller.Request[*unstructured.Unstructured],
		) (controller.Result, error) {
			if req.Object == nil || req.Object.GetLabels()["seen"] != "" {
				return controller.Result{}, nil
			}
			req.Object.SetLabels(map[string]string{"seen": "yes"})
			return controller.Result{}, req.Update(ctx, req.Object)
		}))
	c := server.DefaultConfig()
	c.TargetSelector = own + ",test=" + k.Name
	c.Hooks = hooksInProcess
	c.Controllers = []controller.Declared{copyController(k), marks}
	c.LeaderElection.Enabled = true
	c.LeaderElection.Namespace = k.Namespace
	c.LeaderElection.ID = k.Name
	p := runServer(k, c)

	p.answers(fmt.Sprintf("controller %q does not run: the API server does not serve Late of %s/v1; "+
		"the controller starts when it does", "late-"+k.Name, k.Group))
	k.Run(kit.Composite{
		Parent: "pages", Children: []string{"v1/configmaps InPlace"}, Sync: "inproc:page", Finalize: "inproc:page",
		Version: "v2", Labels: map[string]any{"engine": "own", "test": k.Name},
	})
	k.Object("Page", "home").Set("spec.text", "hello").Apply()
	await(k, "v1/ConfigMap", "home", "data.text", "hello")

	k.Apply(fmt.Sprintf(copiedManifest, "a"))
	await(k, "v1/ConfigMap", "a-copy", "data.text", "one")
	k.Object("v1/ConfigMap", "source").Set("data.text", "two").Apply()
	await(k, "v1/ConfigMap", "a-copy", "data.text", "two")
	k.Delete("v1/ConfigMap", "source")
	await(k, "v1/ConfigMap", "a-copy", "data.text", "one")

	k.CRD("Late", "Namespaced")
	k.Object("Late", "z").Apply()
	await(k, "Late", "z", "metadata.labels.seen", "yes")
	p.hasSeries(`hookloop_reconcile_duration_seconds_count{controller="copies-`+k.Name+`",result="ok"}`,
		`workqueue_depth{name="copies-`+k.Name+`"}`)
	if lease := fmt.Sprint(k.Get(leaseKind, k.Name).Object["spec"]); !strings.Contains(lease, "holderIdentity:") {
		t.Errorf("nobody holds the lease: %s", lease)
	}
	p.stop()
	spec, _, _ := unstructured.NestedString(k.Get(leaseKind, k.Name).Object, "spec", "holderIdentity")
	if spec != "" {
		t.Errorf("%s holds the lease after the end", spec)
	}
}

// hasSeries checks that /metrics has series that begin so.
func (p *goProcess) hasSeries(series ...string) {
	p.k.Helper()
	text, err := serve.Fetch(p.k.Context(), "http://"+p.MetricsAddress+"/metrics")
	if err != nil {
		p.k.Fatal(err)
	}
	for _, s := range series {
		if !strings.Contains(text, "\n"+s) {
			p.k.Errorf("/metrics lacks %s", s)
		}
	}
}

// TestControllersOnlyWithoutRights runs controllers in Go alone, with an account that may not read
// Secrets: /readyz names verbs and resource, the other controller works, and the one without rights
// starts when they are granted.
func TestControllersOnlyWithoutRights(t *testing.T) {
	parallel(t)
	k := kit.New(t)
	kubeconfig, err := k.Cluster.ServiceAccountKubeconfig(t.Context(), k.Namespace, "engine")
	if err != nil {
		t.Fatal(err)
	}
	grantCore(k, "configmaps", "get, list, watch, create, update, patch, delete")
	grantCore(k, "events", "create, patch")
	seen := make(chan string, 100)
	secrets := controller.New[*corev1.Secret]("secrets-" + k.Name).Reconciler(
		controller.ReconcileFunc[*corev1.Secret](func(
			_ context.Context, req *controller.Request[*corev1.Secret],
		) (controller.Result, error) {
			if req.Key.Namespace == k.Namespace {
				seen <- req.Key.Name
			}
			return controller.Result{}, nil
		}))
	c := server.DefaultConfig()
	c.Kubeconfig = kubeconfig
	c.ControllersOnly = true
	c.Controllers = []controller.Declared{copyController(k), secrets}
	p := runServer(k, c)
	p.answers("list and watch of secrets are forbidden; expected the rights to list and watch it: ")
	k.Apply(fmt.Sprintf(copiedManifest, "a"))
	await(k, "v1/ConfigMap", "a-copy", "data.text", "one")
	k.Object("v1/Secret", "s").Apply()
	grantCore(k, "secrets", "get, list, watch")
	select {
	case <-seen:
	case <-time.After(kit.Deadline):
		t.Error(errors.New("the Secret is not reconciled"))
	}
}

// grantCore gives the account "engine" rights on a core resource.
func grantCore(k *kit.Kit, resource, verbs string) {
	k.Helper()
	k.Apply(strings.NewReplacer("RESOURCE", resource, "VERBS", verbs).Replace(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: $NAME-RESOURCE}
rules: [{apiGroups: [""], resources: [RESOURCE], verbs: [VERBS]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: $NAME-RESOURCE}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: $NAME-RESOURCE}
subjects: [{kind: ServiceAccount, name: engine, namespace: $NS}]
`))
	k.Cleanup(func() {
		k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", k.Name+"-"+resource)
		k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", k.Name+"-"+resource)
	})
}
