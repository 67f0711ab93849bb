package integration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// awaitAsked waits until a hook has had n more questions about a parent.
func awaitAsked(k *kit.Kit, hook *kit.Hook, parent string, n int) {
	k.Helper()
	want := hook.Asked(parent) + n
	k.Eventually(fmt.Sprintf("the hook is asked %d times more", n), func() error {
		if got := hook.Asked(parent); got < want {
			return fmt.Errorf("%d times are missing", want-got)
		}
		return nil
	})
}

// TestStatusIsTheHooks replaces the parent's status by the hook's, with the observed generation.
func TestStatusIsTheHooks(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Object("Web", "web").Set("spec.answer.status.phase", "up").Set("spec.answer.status.old", true).Apply()
	await(k, "Web", "web", "status.phase", "up")
	k.Object("Web", "web").Set("spec.answer.status.phase", "down").Apply()
	await(k, "Web", "web", "status.phase", "down")
	got, _, _ := unstructured.NestedMap(k.Get("Web", "web").Object, "status")
	delete(got, "conditions")
	if diff := cmp.Diff(map[string]any{"phase": "down", "observedGeneration": int64(2)}, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestResync(t *testing.T) {
	parallel(t)
	cases := map[string]struct {
		period int64
		answer map[string]any
	}{
		"resyncAfterSeconds asks again":  {answer: map[string]any{"resyncAfterSeconds": 0.5}},
		"resyncPeriodSeconds asks again": {period: 1, answer: map[string]any{}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			hook := k.Hook(func(kit.Request) any { return c.answer })
			run(t, k, kit.Composite{Sync: hook.URL, Resync: c.period})
			k.Apply(parent("web"))
			await(k, "Web", "web", "status.observedGeneration", "1")
			awaitAsked(k, hook, "web", 1)
			k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
		})
	}
}

// TestQuiescence has children with fields that the server defaults, drops and treats as null, and
// with a status that Kubernetes' own controllers write. After they are as desired, the engine no
// longer writes.
func TestQuiescence(t *testing.T) {
	k := start(t)
	labels := map[string]any{"app": "web"}
	deployment := map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{
			"unknownToTheServer": true,
			"selector":           map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels, "creationTimestamp": nil},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "web", "image": "web:1", "ports": []any{map[string]any{"containerPort": 80}},
					"resources": map[string]any{"requests": map[string]any{"cpu": "0.1", "memory": "1024Mi"}},
				}}},
			},
		},
	}
	service := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "web"},
		"spec": map[string]any{"selector": labels, "ports": []any{map[string]any{"port": 80}}, "externalName": nil},
	}
	text := configMap("web", "one")
	text["data"].(map[string]any)["gone"], text["immutable"] = nil, nil
	hook := k.Hook(func(kit.Request) any { return map[string]any{"children": []any{deployment, service, text}} })
	run(t, k, kit.Composite{
		Sync:     hook.URL,
		Resync:   1,
		Children: []string{"apps/v1/deployments InPlace", "v1/services InPlace", "v1/configmaps InPlace"},
	})
	mark := k.Mark()
	k.Apply(parent("web"))
	pod := awaitPod(k)
	k.Settled(settled)
	k.NoWrites(func() {
		k.Patch("v1/Pod", pod, "status: {phase: Running, conditions: [{type: Ready, status: 'True'}]}", "status")
		await(k, "apps/v1/Deployment", "web", "status.availableReplicas", "1")
		awaitAsked(k, hook, "web", 1)
	})
	k.Settled(settled)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 3) }) // there are two periods from the first to the third
	creates := []string{"create configmaps web", "create deployments web", "create services web"}
	if diff := cmp.Diff(creates, sorted(k.ChildWrites(mark))); diff != "" {
		t.Errorf("all writes to children (-want +got):\n%s", diff)
	}
}

// awaitPod waits for the Pod that the Deployment's ReplicaSet creates, and returns its name.
func awaitPod(k *kit.Kit) (name string) {
	k.Helper()
	k.Eventually("the Deployment has a Pod", func() error {
		pods := k.List("v1/Pod")
		if len(pods) != 1 {
			return fmt.Errorf("there are %d", len(pods))
		}
		name = pods[0].GetName()
		return nil
	})
	return name
}
