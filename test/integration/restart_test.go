package integration

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/confine"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// ownEngine runs an engine in a process of its own, for controllers with the returned labels.
func ownEngine(k *kit.Kit, flags ...string) (*serve.Engine, map[string]any) {
	k.Helper()
	return engineWithin(k, nil, flags...)
}

// engineWithin is ownEngine under a memory limit.
func engineWithin(k *kit.Kit, limit *confine.Group, flags ...string) (*serve.Engine, map[string]any) {
	k.Helper()
	e, err := serve.Start(k.Context(), serve.Config{
		Within:     limit,
		Kubeconfig: k.Cluster.Kubeconfig(),
		Flags:      append([]string{"--target-label-selector=" + own + ",test=" + k.Name}, flags...),
	})
	if e != nil {
		k.Own(e.Process)
	}
	if err != nil {
		k.Fatal(err)
	}
	return e, map[string]any{"engine": "own", "test": k.Name}
}

// TestRestartRecreatesNothing restarts an engine with children that the server stores in another
// notation: 1000m of CPU is 1. The engine has no memory of that, and still recreates nothing.
func TestRestartRecreatesNothing(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, labels := ownEngine(k)
	k.Run(
		kit.Composite{Parent: "webs", Children: []string{"apps/v1/deployments Recreate"}, Sync: mirror(t), Labels: labels})
	k.Apply(
		parent(
			"web",
			`{apiVersion: apps/v1, kind: Deployment, metadata: {name: server}, spec: {selector: {matchLabels: {app: web}},
			template: {metadata: {labels: {app: web}}, spec: {containers: [
			{name: server, image: nginx, resources: {requests: {cpu: 1000m}}}]}}}}`,
		),
	)
	await(k, "apps/v1/Deployment", "server", "spec.replicas", "1")
	awaitSync(k, "web")
	before := k.Get("apps/v1/Deployment", "server").GetUID()
	mark := k.Mark()
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitSync(k, "web")
	awaitSync(k, "web")
	if after := k.Get("apps/v1/Deployment", "server").GetUID(); after != before {
		t.Errorf("the child was recreated")
	}
	if diff := cmp.Diff([]string{}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes of the new engine (-want +got):\n%s", diff)
	}
}
