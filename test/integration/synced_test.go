package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// awaitSyncedTrue waits for the same as "kubectl wait --for=condition=Synced": True, with the
// current generation.
func awaitSyncedTrue(k *kit.Kit, kind, name string) {
	k.Helper()
	k.Eventually(kind+" "+name+" is Synced", func() error {
		o := k.Get(kind, name)
		c := kit.Condition(o, "Synced")
		if c["status"] != "True" || c["observedGeneration"] != o.GetGeneration() {
			return fmt.Errorf("generation %d, condition %v", o.GetGeneration(), c)
		}
		return nil
	})
}

// TestSyncedIsAlwaysThere follows the condition Synced through a fault, with a hook that answers
// the conditions of the request.
func TestSyncedIsAlwaysThere(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		if bad, _, _ := unstructured.NestedBool(r.Parent.Object, "spec", "bad"); bad {
			return map[string]any{"children": []any{nil}}
		}
		conditions, _, _ := unstructured.NestedSlice(r.Parent.Object, "status", "conditions")
		return map[string]any{"status": map[string]any{"conditions": conditions}}
	})
	run(t, k, kit.Composite{Sync: hook.URL, Resync: 1})
	k.Apply(parent("web"))
	awaitSyncedTrue(k, "Web", "web")
	k.Patch("Web", "web", "spec: {bad: true}")
	k.AwaitFault("Web", "web", "InvalidHookAnswer", "children[0]")
	k.Patch("Web", "web", "spec: {bad: false}")
	awaitSyncedTrue(k, "Web", "web")
	k.Settled(settled)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
}

// TestSwapWritesNoParentAtRest has a parent of Metacontroller's without the condition Synced: it is
// not written to add the condition.
func TestSwapWritesNoParentAtRest(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	k.Apply(parent("web"))
	k.Patch("Web", "web", "status: {observedGeneration: 1, phase: up}", "status")
	hook := k.Hook(func(kit.Request) any { return map[string]any{"status": map[string]any{"phase": "up"}} })
	mark := k.Mark()
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL, Resync: 1})
	awaitAsked(k, hook, "web", 2)
	for _, w := range k.Writes(mark) {
		if w.Resource == "webs" {
			t.Errorf("the parent was written: %s", w)
		}
	}
	k.Patch("Web", "web", "spec: {more: yes}")
	awaitSyncedTrue(k, "Web", "web")
}

// withoutStatus is a CustomResourceDefinition with a field status and no subresource.
const withoutStatus = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Web, plural: webs, singular: web}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// TestFaultWithoutStatusSubresource repeats a fault on a parent with a generation that grows with
// each write of the status. The fault is written once, and withdrawn once.
func TestFaultWithoutStatusSubresource(t *testing.T) {
	k := start(t)
	k.Apply(withoutStatus)
	hook := k.Hook(func(kit.Request) any { return kit.Answer{Code: 500, Body: "down"} })
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL})
	mark := k.Mark()
	k.Apply(parent("web"))
	k.AwaitFault("Web", "web", "HookFailed", "down")
	awaitAsked(k, hook, "web", 4)
	if n := kit.Count(k.Writes(mark), "patch", "webs"); n != 1 {
		t.Errorf("the parent was written %d times, want once", n)
	}
	hook.Answer(func(kit.Request) any { return map[string]any{} })
	k.Eventually("the parent is synced", func() error {
		if c := kit.Condition(k.Get("Web", "web"), "Synced"); c["status"] != "True" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
	k.Settled(settled)
	if n := kit.Count(k.Writes(mark), "patch", "webs"); n != 2 {
		t.Errorf("the parent was written %d times, want twice", n)
	}
}

// TestDecoratorWritesAnEmptyStatus writes an answered status although it is empty: later steps need
// the event.
func TestDecoratorWritesAnEmptyStatus(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	decorate(t, k, "", "", "")
	k.Apply(target("", "status: {}"))
	k.Eventually("there is a status", func() error {
		status, found, err := unstructured.NestedMap(k.Get("Web", "web").Object, "status")
		if err != nil || !found || len(status) > 0 {
			return errors.Join(err, fmt.Errorf("it is %v", status))
		}
		return nil
	})
	k.NoWrites(func() { k.Settled(3 * settled) })
	k.Apply(strings.Replace(target("", "labels: {a: b}"), "name: web", "name: none", 1))
	await(k, "Web", "none", "metadata.labels.a", "b")
	if _, found := k.Get("Web", "none").Object["status"]; found {
		t.Error("an answer without a status wrote one")
	}
}
