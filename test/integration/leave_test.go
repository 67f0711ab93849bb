package integration

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

func compositeFinalizer(k *kit.Kit) string { return "metacontroller.io/compositecontroller-" + k.Name }

// awaitFinalizer waits until the parent web has the controller's finalizer.
func awaitFinalizer(k *kit.Kit) {
	k.Helper()
	k.Eventually("the parent has the finalizer", func() error {
		if found := k.Get("Web", "web").GetFinalizers(); !slices.Contains(found, compositeFinalizer(k)) {
			return fmt.Errorf("finalizers are %v", found)
		}
		return nil
	})
}

// awaitNoFinalizer waits until the parent web no longer has the controller's finalizer.
func awaitNoFinalizer(k *kit.Kit) {
	k.Helper()
	k.Eventually("the parent no longer has the finalizer", func() error {
		if found := k.Get("Web", "web").GetFinalizers(); slices.Contains(found, compositeFinalizer(k)) {
			return fmt.Errorf("finalizers are %v", found)
		}
		return nil
	})
}

func TestFinalizerGoesWithItsController(t *testing.T) {
	parallel(t)
	hook := mirror(t)
	cases := map[string]func(*kit.Kit){
		"the controller is deleted": func(k *kit.Kit) { k.Delete(kit.CompositeController, k.Name) },
		"finalize is declared no more": func(k *kit.Kit) {
			k.Declare(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook})
		},
		"the parents are of another resource": func(k *kit.Kit) {
			k.Declare(kit.Composite{Parent: "v1/configmaps", Only: map[string]any{"none": "here"}, Sync: hook, Finalize: hook})
		},
	}
	for name, leave := range cases {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			run(t, k, kit.Composite{Sync: hook, Finalize: hook})
			k.Apply(parent("web", page("page", "text: one")))
			awaitFinalizer(k)
			leave(k)
			awaitNoFinalizer(k)
			k.Delete("Web", "web")
			k.Eventually("the parent is gone", func() error {
				if k.Find("Web", "web") != nil {
					return fmt.Errorf("it is there")
				}
				return nil
			})
		})
	}
}

// TestControllerThatIsNoLongerTargeted is stopped, and started again when its labels match again.
func TestControllerThatIsNoLongerTargeted(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.Patch(kit.CompositeController, k.Name, "metadata: {labels: {engine: own}}")
	for _, event := range []string{"Stopping", "Stopped"} {
		k.AwaitControllerEvent(event)
	}
	k.Apply(parent("web", page("page", "text: two")))
	k.Patch(kit.CompositeController, k.Name, "metadata: {labels: {engine: null}}")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
}

// ownRecord is a flag that keeps an engine's record of finalizers in the test's namespace: an
// engine that starts removes the finalizers of deleted controllers in its record, also of other
// tests.
func ownRecord(k *kit.Kit) string { return "--leader-election-namespace=" + k.Namespace }

// TestFinalizerGoesThoughTheEngineIsDown deletes the controller, or gives it other parents, while
// no engine runs. The controller is deleted immediately, so that an uninstall may remove the engine
// first. The next engine removes the parents' finalizers.
func TestFinalizerGoesThoughTheEngineIsDown(t *testing.T) {
	parallel(t)
	hook := mirror(t)
	cases := map[string]func(*kit.Kit, map[string]any){
		"the controller is deleted": func(k *kit.Kit, _ map[string]any) {
			k.Delete(kit.CompositeController, k.Name)
			k.Eventually("the controller is gone", func() error {
				if k.Find(kit.CompositeController, k.Name) != nil {
					return fmt.Errorf("it is there")
				}
				return nil
			})
		},
		"the parents are of another resource": func(k *kit.Kit, labels map[string]any) {
			k.Declare(
				kit.Composite{
					Parent:   "v1/configmaps",
					Only:     map[string]any{"none": "here"},
					Sync:     hook,
					Finalize: hook,
					Labels:   labels,
				},
			)
		},
	}
	for name, leave := range cases {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			engine, labels := ownEngine(k, ownRecord(k))
			run(t, k, kit.Composite{Sync: hook, Finalize: hook, Labels: labels})
			k.Apply(parent("web", page("page", "text: one")))
			awaitFinalizer(k)
			if err := engine.Kill(); err != nil {
				t.Fatal(err)
			}
			leave(k, labels)
			k.Delete("Web", "web")
			awaitFinalizer(k)
			if err := engine.Restart(); err != nil {
				t.Fatal(err)
			}
			k.Eventually("the parent is gone", func() error {
				if k.Find("Web", "web") != nil {
					return fmt.Errorf("it is there")
				}
				return nil
			})
		})
	}
}
