package integration

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
)

// farewell is a hook that finalizes the parts that it may, and keeps the outputs of the others.
type farewell struct {
	mu    sync.Mutex // guards the fields below
	may   map[string]bool
	asked map[string]int
}

func (f *farewell) answer(r kit.Request) any {
	answer := copies(r).(map[string]any)
	if !r.Finalizing {
		return answer
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[r.MapKey]++
	if f.may[r.MapKey] {
		return map[string]any{"finalized": true}
	}
	answer["resyncAfterSeconds"] = 0.2
	return answer
}

func (f *farewell) allow(parts ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, part := range parts {
		f.may[part] = true
	}
}

// askedParts returns the parts about which the finalize hook was asked.
func (f *farewell) askedParts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.asked))
}

func mapFinalizer(k *kit.Kit) string { return "metacontroller.io/mapcontroller-" + k.Name }

// awaitMapFinalizer waits until the parent web has the finalizer.
func awaitMapFinalizer(k *kit.Kit) {
	k.Helper()
	k.Eventually("the parent has the finalizer", func() error {
		if found := k.Get("Web", "web").GetFinalizers(); !slices.Contains(found, mapFinalizer(k)) {
			return fmt.Errorf("finalizers are %v", found)
		}
		return nil
	})
}

// awaitNoMapFinalizer waits until the parent web no longer has the finalizer, or is gone.
func awaitNoMapFinalizer(k *kit.Kit) {
	k.Helper()
	k.Eventually("the parent no longer has the finalizer", func() error {
		web := k.Find("Web", "web")
		if web != nil && slices.Contains(web.GetFinalizers(), mapFinalizer(k)) {
			return fmt.Errorf("finalizers are %v", web.GetFinalizers())
		}
		return nil
	})
}

// startFarewell starts a map controller with a finalize hook, and waits for the outputs of its
// parent.
func startFarewell(k *kit.Kit, n int, labels map[string]any) *farewell {
	k.Helper()
	f := &farewell{may: map[string]bool{}, asked: map[string]int{}}
	hook := k.Hook(f.answer)
	runMap(k, kit.Mapping{Map: hook.URL, Finalize: hook.URL, Labels: labels})
	secrets(k, n)
	k.Apply(mapped)
	awaitMapFinalizer(k)
	for i := range n {
		await(k, "v1/ConfigMap", fmt.Sprintf("copy-sec-in-%03d", i), "data.text", "copied")
	}
	return f
}

// leaves are the ways in which the parent web leaves its controller.
var leaves = map[string]func(*kit.Kit){
	"it is deleted":    func(k *kit.Kit) { k.Delete("Web", "web") },
	"it is unselected": func(k *kit.Kit) { k.Patch("Web", "web", "metadata: {labels: {mapped: null}}") },
}

// TestMapFinalize asks the finalize hook about every part of a parent that leaves. The finalizer
// goes when the hook has finished with all of them, also if an input goes meanwhile.
func TestMapFinalize(t *testing.T) {
	parallel(t)
	for name, leave := range leaves {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			f := startFarewell(k, 3, nil)
			leave(k)
			part := func(i int) string { return secretKey(k, fmt.Sprintf("in-%03d", i)) }
			k.Eventually("the hook is asked about all parts", func() error {
				if asked := f.askedParts(); len(asked) != 3 {
					return fmt.Errorf("asked about %v", asked)
				}
				return nil
			})
			f.allow(part(0), part(1))
			k.Eventually("the outputs of two parts are gone", func() error {
				if k.Find("v1/ConfigMap", "copy-sec-in-000") != nil || k.Find("v1/ConfigMap", "copy-sec-in-001") != nil {
					return errors.New("they are there")
				}
				return nil
			})
			k.Delete("v1/Secret", "in-001")
			k.Settled(settled)
			awaitMapFinalizer(k)
			if k.Find("v1/ConfigMap", "copy-sec-in-002") == nil {
				t.Error("the output of a part with which the hook has not finished is gone")
			}
			f.allow(part(2))
			awaitNoMapFinalizer(k)
		})
	}
}

// TestMapFinalizeWithoutParts removes the finalizer of a parent without inputs and outputs.
func TestMapFinalizeWithoutParts(t *testing.T) {
	parallel(t)
	for name, leave := range leaves {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			f := startFarewell(k, 0, nil)
			leave(k)
			awaitNoMapFinalizer(k)
			if asked := f.askedParts(); len(asked) > 0 {
				t.Errorf("asked about %v", asked)
			}
		})
	}
}

// TestMapFinalizerGoesWithItsController removes the finalizer when the MapController is deleted, or
// declares no finalize hook any more.
func TestMapFinalizerGoesWithItsController(t *testing.T) {
	parallel(t)
	for name, leave := range map[string]func(*kit.Kit){
		"the controller is deleted": func(k *kit.Kit) { k.Delete(kit.MapController, k.Name) },
		"finalize is declared no more": func(k *kit.Kit) {
			runMap(k, kit.Mapping{Map: k.Hook(copies).URL})
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			f := startFarewell(k, 2, nil)
			leave(k)
			awaitNoMapFinalizer(k)
			if asked := f.askedParts(); len(asked) > 0 {
				t.Errorf("the finalize hook was asked about %v", asked)
			}
		})
	}
}

// TestMapRestart restarts an engine. It writes nothing while the cluster is as it was. If a parent
// leaves, the hook is asked again about all parts.
func TestMapRestart(t *testing.T) {
	k := start(t)
	engine, labels := ownEngine(k)
	f := startFarewell(k, 3, labels)
	awaitStatus(k, "True", "{observedGeneration: 1, inputs: {secrets: {total: 3}}, outputs: {configmaps: {total: 3}}}")
	k.Settled(settled)
	restart := func() {
		k.Helper()
		if err := engine.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := engine.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	mark := k.Mark()
	restart()
	k.Object("v1/Secret", "later").Label("app", "web").Apply()
	await(k, "v1/ConfigMap", "copy-sec-later", "data.text", "copied")
	awaitStatus(k, "True", "{observedGeneration: 1, inputs: {secrets: {total: 4}}, outputs: {configmaps: {total: 4}}}")
	for _, w := range k.ChildWrites(mark) {
		if !strings.HasSuffix(w, " copy-sec-later") {
			t.Errorf("a write of the new engine: %s", w)
		}
	}
	k.Delete("Web", "web")
	k.Eventually("the hook is asked about all parts", func() error {
		if asked := f.askedParts(); len(asked) != 4 {
			return fmt.Errorf("asked about %v", asked)
		}
		return nil
	})
	f.allow(secretKey(k, "in-000"))
	restart()
	awaitMapFinalizer(k)
	f.allow(secretKey(k, "in-001"), secretKey(k, "in-002"), secretKey(k, "later"))
	awaitNoMapFinalizer(k)
}
