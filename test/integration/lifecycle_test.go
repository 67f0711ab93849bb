package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/kit"
)

// pages returns a hook that answers one ConfigMap "page" with a text.
func pages(text string) func(kit.Request) any {
	return func(kit.Request) any {
		return map[string]any{"children": []any{configMap("page", text)}}
	}
}

// configMap returns a child as a hook answers it.
func configMap(name, text string) map[string]any {
	return map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": name},
		"data":       map[string]any{"text": text},
	}
}

func TestControllerWaitsForItsParentResource(t *testing.T) {
	k := start(t)
	k.Declare(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: mirror(t)})
	k.AwaitReady("ParentNotFound")
	k.AwaitControllerEvent("CreateError")
	k.CRD("Web", "Namespaced")
	k.AwaitReady("Running")
	for _, event := range []string{"Starting", "Started"} {
		k.AwaitControllerEvent(event)
	}
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

func TestControllerOutlivesItsParentResource(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(parent("web", page("first", "text: one")))
	await(k, "v1/ConfigMap", "first", "data.text", "one")
	crd := "webs." + k.Group
	k.Delete("apiextensions.k8s.io/v1/CustomResourceDefinition", crd)
	k.AwaitReady("ParentNotFound")
	k.Eventually("the CRD is gone", func() error {
		if k.Find("apiextensions.k8s.io/v1/CustomResourceDefinition", crd) != nil {
			return errors.New("it is there")
		}
		return nil
	})
	k.CRD("Web", "Namespaced")
	k.AwaitReady("Running")
	k.Apply(parent("web", page("second", "text: one")))
	await(k, "v1/ConfigMap", "second", "data.text", "one")
	await(k, "Web", "web", "status.observedGeneration", "1")
}

func TestControllerRestartsWhenItsSpecChanges(t *testing.T) {
	k := start(t)
	old := k.Hook(pages("old"))
	current := k.Hook(pages("new"))
	run(t, k, kit.Composite{Sync: old.URL})
	k.Apply(parent("web"))
	await(k, "v1/ConfigMap", "page", "data.text", "old")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: current.URL})
	await(k, "v1/ConfigMap", "page", "data.text", "new")
	asked := old.Asked("web")
	k.Delete("v1/ConfigMap", "page")
	await(k, "v1/ConfigMap", "page", "data.text", "new")
	if n := old.Asked("web") - asked; n != 0 {
		t.Errorf("the old hook was asked %d times more, want none", n)
	}
}

func TestClusterScopedChildOfANamespacedParentIsRefused(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	k.Declare(kit.Composite{Parent: "webs", Children: []string{"v1/namespaces InPlace"}, Sync: mirror(t)})
	k.AwaitReady("InvalidSpec")
}

// TestStartsDoNotWaitForEachOther declares controllers with parents that cannot be listed, because
// their conversion webhook is gone: more of them than workers that start controllers. Each reports
// the API server's error, and others start and stop as usual.
func TestStartsDoNotWaitForEachOther(t *testing.T) {
	k := start(t)
	version := "{name: NAME, served: true, storage: STORAGE, schema: {openAPIV3Schema: {type: object, " +
		"x-kubernetes-preserve-unknown-fields: true}}}"
	versions := strings.NewReplacer("NAME", "v1", "STORAGE",
		"true").Replace(version) + ", " + strings.NewReplacer(
		"NAME",
		"v2",
		"STORAGE",
		"false",
	).Replace(version)
	k.Apply("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: sicks.$GROUP}\n" +
		"spec: {group: $GROUP, scope: Namespaced, names: {kind: Sick, plural: sicks, singular: sick}, " +
		"versions: [" + versions + "]}")
	k.Object("Sick", "sick").Apply()
	k.Patch(
		"apiextensions.k8s.io/v1/CustomResourceDefinition",
		"sicks."+k.Group,
		"spec: {conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], "+
			"clientConfig: {url: 'https://127.0.0.1:1/convert'}}}}",
	)
	for i := range 5 {
		name := fmt.Sprint(k.Name, "-", i)
		k.Object("metacontroller.k8s.io/v1alpha1/CompositeController", name).
			Set("spec.generateSelector", true).Set("spec.parentResource.apiVersion", k.Group+"/v2").
			Set("spec.parentResource.resource", "sicks").
			Set("spec.hooks.sync.webhook.url", "http://127.0.0.1:1").Apply()
		t.Cleanup(func() { k.Delete(kit.CompositeController, name) })
	}
	run(t, k, kit.Composite{})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	for i := range 5 {
		name := fmt.Sprint(k.Name, "-", i)
		k.Eventually(name+" reports the reason", func() error {
			c := kit.Condition(k.Get(kit.CompositeController, name), v1alpha1.ConditionReady)
			if message := fmt.Sprint(
				c["message"],
			); c["reason"] != v1alpha1.ReasonStarting ||
				!strings.Contains(message, "conversion webhook") {
				return fmt.Errorf("its condition is %v", c)
			}
			return nil
		})
	}
}
