package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDeploymentsAsParents has Deployments as parents. Kubernetes' own controller writes their
// status: the hook's answer is merged into it, and the two writers do not alternate.
func TestDeploymentsAsParents(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		answer := map[string]any{"children": []any{configMap("side", "one")}}
		if r.Parent.GetAnnotations()["say"] != "" {
			answer["status"] = map[string]any{"conditions": []any{
				map[string]any{
					"type":               "Audited",
					"status":             "True",
					"reason":             "Fine",
					"message":            "fine",
					"lastTransitionTime": "2026-01-01T00:00:00Z",
				},
			}}
		}
		return answer
	})
	k.Run(kit.Composite{
		Parent:   "apps/v1/deployments",
		Only:     map[string]any{"test": k.Name},
		Children: []string{"v1/configmaps InPlace"},
		Sync:     hook.URL,
		Resync:   1,
	})
	mark := k.Mark()
	k.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels:
    test: $NAME
spec:
  replicas: 2
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: web
        image: web:1
`)
	await(k, "v1/ConfigMap", "side", "data.text", "one")
	await(k, "apps/v1/Deployment", "web", "status.replicas", "2")
	awaitAsked(k, hook, "web", 2)
	if n := kit.Count(k.Writes(mark), "patch", "deployments/status"); n != 0 {
		t.Errorf("the status was written %d times without an answered status, want never", n)
	}

	k.Patch("apps/v1/Deployment", "web", "metadata: {annotations: {say: something}}")
	k.Eventually("the hook's condition is there", func() error {
		if c := kit.Condition(k.Get("apps/v1/Deployment", "web"), "Audited"); c["status"] != "True" {
			return fmt.Errorf("it is %v", c)
		}
		return nil
	})
	k.Patch("apps/v1/Deployment", "web", "spec: {replicas: 3}")
	await(k, "apps/v1/Deployment", "web", "status.replicas", "3")
	k.Settled(settled)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
	if n := kit.Count(k.Writes(mark), "patch", "deployments/status"); n > 5 {
		t.Errorf("the status was written %d times, want a few", n)
	}
	web := k.Get("apps/v1/Deployment", "web")
	if kit.Condition(web, "Progressing") == nil || kit.Condition(web, "Audited") == nil ||
		kit.Condition(web, "Synced") != nil {
		t.Errorf("conditions are not those of both: %v", web.Object["status"])
	}

	// A fault is reported by a condition here, too, and withdrawn.
	hook.Answer(func(kit.Request) any { return map[string]any{"children": []any{nil}} })
	k.AwaitFault("apps/v1/Deployment", "web", "InvalidHookAnswer", "children[0]")
	await(k, "apps/v1/Deployment", "web", "status.replicas", "3")
	hook.Answer(func(kit.Request) any { return map[string]any{"children": []any{configMap("side", "one")}} })
	k.Eventually("the fault is taken back", func() error {
		if c := kit.Condition(k.Get("apps/v1/Deployment", "web"), "Synced"); c["status"] != "True" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	k.Settled(settled)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
}

// TestTerminatingNamespaceAsParent has a finalize hook of a Namespace that answers a status. The
// status is merged, so that the phase stays Terminating, and the Namespace is deleted.
func TestTerminatingNamespaceAsParent(t *testing.T) {
	k := start(t)
	name := k.Name + "-parent"
	hook := k.Hook(func(r kit.Request) any {
		children := []any{}
		if !r.Finalizing {
			child := configMap("side", "one")
			child["metadata"].(map[string]any)["namespace"] = k.Namespace
			children = append(children, child)
		}
		left := len(r.Children["ConfigMap.v1"])
		return map[string]any{
			"children":  children,
			"status":    map[string]any{"left": left},
			"finalized": r.Finalizing && left == 0,
		}
	})
	k.Run(kit.Composite{
		Parent:   "v1/namespaces",
		Only:     map[string]any{"test": k.Name},
		Children: []string{"v1/configmaps InPlace"},
		Sync:     hook.URL,
		Finalize: hook.URL,
	})
	k.Object("v1/Namespace", name).Label("test", k.Name).Apply()
	await(k, "v1/ConfigMap", "side", "data.text", "one")
	await(k, "v1/Namespace", name, "status.phase", "Active")
	k.Delete("v1/Namespace", name)
	await(k, "v1/ConfigMap", "side", "data.text", "")
	k.Eventually("the Namespace is let go", func() error { // Kubernetes takes some time for its own part
		if o := k.Find("v1/Namespace", name); o != nil && len(o.GetFinalizers()) > 0 {
			return fmt.Errorf("it has the finalizers %q", o.GetFinalizers())
		}
		return nil
	})
	if faults := k.Events(name, "SyncError"); len(faults) > 0 {
		t.Errorf("syncs have failed: %q", faults)
	}
}

// TestNodesAndPodsAsParents has a hook without a status for kinds with a kubelet that writes the
// status: the status stays.
func TestNodesAndPodsAsParents(t *testing.T) {
	parallel(t)
	for kind, c := range map[string]struct{ parent, object, status string }{
		"v1/Pod": {
			"v1/pods", "{apiVersion: v1, kind: Pod, metadata: {name: NAME, labels: {test: $NAME}}, " +
				"spec: {containers: [{name: web, image: 'web:1'}]}}",
			"status: {phase: Running, podIP: 10.0.0.1, conditions: [{type: Ready, status: 'True'}]}",
		},
		"v1/Node": {
			"v1/nodes", "{apiVersion: v1, kind: Node, metadata: {name: NAME, labels: {test: $NAME}}}",
			"status: {capacity: {pods: '10'}, conditions: [{type: Ready, status: 'True', reason: Fine}]}",
		},
	} {
		t.Run(kind, func(t *testing.T) {
			k := start(t)
			name := k.Name + "-parent"
			hook := k.Hook(func(kit.Request) any { return map[string]any{} })
			k.Run(
				kit.Composite{
					Parent:   c.parent,
					Only:     map[string]any{"test": k.Name},
					Children: []string{},
					Sync:     hook.URL,
					Resync:   1,
				},
			)
			k.Apply(strings.ReplaceAll(c.object, "name: NAME", "name: "+name))
			k.Cleanup(func() { k.Delete(kind, name) })
			k.Patch(kind, name, c.status, "status")
			before, _, _ := unstructured.NestedMap(k.Get(kind, name).Object, "status")
			mark := k.Mark()
			awaitAsked(k, hook, name, 3)
			for _, w := range k.Writes(mark) {
				if w.Name == name {
					t.Errorf("the parent was written: %s", w)
				}
			}
			after, _, _ := unstructured.NestedMap(k.Get(kind, name).Object, "status")
			delete(before, "conditions") // Kubernetes' own controllers continue to write these
			delete(after, "conditions")
			if diff := cmp.Diff(before, after); diff != "" {
				t.Errorf("status (-before +after):\n%s", diff)
			}
		})
	}
}
