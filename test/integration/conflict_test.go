package integration

import (
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

// TestControllersOfTheSameParents has two controllers that overwrite each other's status. Both
// report it, and neither stops.
func TestControllersOfTheSameParents(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	second := k.Name + "-b"
	k.Apply(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: ` + second + `}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources: [{apiVersion: v1, resource: secrets}]
  hooks: {sync: {webhook: {url: "` + mirror(t) + `"}}}
`)
	k.Cleanup(func() { k.Delete(kit.CompositeController, second) })
	k.AwaitReady("ParentConflict")
	awaitConflict(k, kit.CompositeController, second)
	k.AwaitEventOf(k.Name, "ParentConflict", second)
	k.AwaitEventOf(second, "ParentConflict", k.Name)
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")

	k.Delete(kit.CompositeController, second)
	k.AwaitReady("Running")

	decorate(t, k, "-d", "", "")
	k.Apply(parent("quiet"))
	await(k, "Web", "quiet", "status.observedGeneration", "1")
	k.AwaitReady("Running")
	k.Object("Web", "loud").Set("spec.answer.status.phase", "up").Apply()
	k.AwaitReady("ParentConflict")
	awaitConflict(k, "metacontroller.k8s.io/v1alpha1/DecoratorController", k.Name+"-d")
}

func awaitConflict(k *kit.Kit, kind, name string) {
	k.Helper()
	k.Eventually(name+" reports the conflict and runs", func() error {
		if c := kit.Condition(k.Get(kind, name), "Ready"); c["status"] != "True" || c["reason"] != "ParentConflict" {
			return fmt.Errorf("its condition is %v", c)
		}
		return nil
	})
}

// TestParentsWithoutStatusSubresource has a controller that reports, before a parent exists, that
// the resource has no status subresource.
func TestParentsWithoutStatusSubresource(t *testing.T) {
	k := start(t)
	k.Apply(withoutStatus)
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: mirror(t)})
	k.AwaitEventOf(k.Name, "SyncError", "does not have subresource 'Status' enabled")
}
