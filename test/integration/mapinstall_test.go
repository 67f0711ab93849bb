package integration

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// lateController is a MapController that is applied after its CRD.
const lateController = `
apiVersion: metacontroller.k8s.io/v1alpha1
kind: MapController
metadata: {name: late}
spec:
  parentResource: {apiVersion: apps/v1, resource: deployments, labelSelector: {matchLabels: {none: here}}}
  inputResources: [{apiVersion: v1, resource: configmaps}]
  hooks: {map: {webhook: {url: 'http://127.0.0.1:1/map'}}}
`

// TestEngineWithoutTheCRDOfMapControllers is ready in a cluster that has Metacontroller's CRDs
// only, and runs MapControllers as soon as their CRD is installed.
func TestEngineWithoutTheCRDOfMapControllers(t *testing.T) {
	parallel(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	crd := func(plural string) string {
		return filepath.Join(cluster.Root(), "manifests", "crds", "metacontroller.k8s.io_"+plural+".yaml")
	}
	c, err := cluster.New(ctx, cluster.Options{
		CRDs: []string{crd("compositecontrollers"), crd("decoratorcontrollers"), crd("controllerrevisions")},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	})
	e, err := serve.Start(ctx, serve.Config{Kubeconfig: c.Kubeconfig()})
	if e != nil {
		t.Cleanup(func() {
			if err := e.Stop(10 * time.Second); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatalf("the engine is not ready: %v", err)
	}
	manifest := filepath.Join(t.TempDir(), "controller.yaml")
	if err := os.WriteFile(manifest, []byte(lateController), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "-f", crd("mapcontrollers")},
		{"wait", "--for=condition=Established", "--timeout=30s", "-f", crd("mapcontrollers")},
		{"apply", "-f", manifest},
		{"wait", "--for=condition=Ready", "--timeout=60s", "-f", manifest},
	} {
		if out, err := c.Kubectl(ctx, args...); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
}
