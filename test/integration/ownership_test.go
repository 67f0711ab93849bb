package integration

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// selecting returns a Web that selects its children by the label app=web.
func selecting(children ...string) string {
	return strings.Replace(parent("web", children...), "spec: {", "spec: {selector: {matchLabels: {app: web}}, ", 1)
}

// labelled is page "page" with labels.
func labelled(labels string) string {
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: page, labels: {" + labels + "}}, data: {text: one}}"
}

// awaitOwner waits until an object's controller is the Web with a name; "" for none.
func awaitOwner(k *kit.Kit, name, owner string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("ConfigMap %s is owned by %q", name, owner), func() error {
		o, err := k.Lookup("v1/ConfigMap", name)
		if err != nil {
			return err
		}
		got := ""
		if ref := metav1.GetControllerOf(o); ref != nil {
			got = ref.Name
		}
		if got != owner {
			return fmt.Errorf("it is owned by %q", got)
		}
		return nil
	})
}

func TestOrphanIsAdopted(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{BySelector: true})
	k.Object("v1/ConfigMap", "page").Label("app", "other").Set("data.text", "mine").Set("data.more", "mine").Apply()
	k.Apply(selecting())
	awaitSync(k, "web")
	mark := k.Mark()
	uid := k.Get("v1/ConfigMap", "page").GetUID()

	k.Apply(selecting(labelled("app: web"))) // an object that is not selected has the name …
	k.AwaitFault("Web", "web", "ChildNameTaken", `"`+k.Namespace+`/page"`)
	awaitOwner(k, "page", "")
	k.Patch("v1/ConfigMap", "page", "metadata: {labels: {app: web}}") // … and now it is selected
	awaitOwner(k, "page", "web")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	k.AwaitSynced("Web", "web")
	if field(k, "v1/ConfigMap", "page", "data.more") != "mine" || k.Get("v1/ConfigMap", "page").GetUID() != uid {
		t.Error("the ConfigMap was replaced, want it adopted as it was")
	}
	for _, line := range k.ChildWrites(mark) {
		if strings.HasPrefix(line, "delete") {
			t.Errorf("unexpected write: %s", line)
		}
	}
}

// TestChildIsReleased changes the labels of a child so that the parent no longer selects it. The
// parent reports that its name is taken, and continues after the answer has another name for the
// child.
func TestChildIsReleased(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{BySelector: true})
	k.Apply(selecting(labelled("app: web")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitOwner(k, "page", "web")
	awaitSync(k, "web")
	mark := k.Mark()

	k.Patch("v1/ConfigMap", "page", "metadata: {labels: {app: other}}")
	awaitOwner(k, "page", "")
	k.AwaitFault("Web", "web", "ChildNameTaken", "page")
	k.Apply(selecting(strings.Replace(labelled("app: web"), "name: page", "name: next", 1)))
	await(k, "v1/ConfigMap", "next", "data.text", "one")
	k.AwaitSynced("Web", "web")
	if got := field(k, "v1/ConfigMap", "page", "metadata.labels.app"); got != "other" {
		t.Errorf("the released ConfigMap has the label app=%q, want other", got)
	}
	if diff := cmp.Diff("patch configmaps page", k.ChildWrites(mark)[0]); diff != "" {
		t.Errorf("the first write (-want +got):\n%s", diff)
	}
}

func TestSelectorIsGenerated(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitOwner(k, "page", "web")
	uid := string(k.Get("Web", "web").GetUID())
	if diff := cmp.Diff(map[string]string{"controller-uid": uid}, k.Get("v1/ConfigMap", "page").GetLabels()); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// TestFinalizeHook deletes a parent with a finalize hook. The hook first empties the children, and
// then finalizes the parent.
func TestFinalizeHook(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Finalize: mirror(t)})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	finalizer := "metacontroller.io/compositecontroller-" + k.Name
	if diff := cmp.Diff([]string{finalizer}, k.Get("Web", "web").GetFinalizers()); diff != "" {
		t.Fatalf("finalizers (-want +got):\n%s", diff)
	}
	mark := k.Mark()
	k.Patch("Web", "web", "spec: {finally: {children: ["+page("page", "text: bye")+"], finalized: false}}")
	k.Delete("Web", "web")
	await(k, "v1/ConfigMap", "page", "data.text", "bye")
	k.Patch("Web", "web", "spec: {finally: {children: [], status: {phase: gone}, finalized: false}}")
	await(k, "Web", "web", "status.phase", "gone")
	if diff := cmp.Diff([]string{"update configmaps page", "delete configmaps page"}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{finalizer}, k.Get("Web", "web").GetFinalizers()); diff != "" {
		t.Fatalf("finalizers before finalized: true (-want +got):\n%s", diff)
	}
	k.Patch("Web", "web", "spec: {finally: {finalized: true}}")
	k.Eventually("the Web is gone", func() error {
		if k.Find("Web", "web") != nil {
			return errors.New("it is there")
		}
		return nil
	})
}

// TestChildrenOfADeletedParentAreCollected expects Kubernetes' own garbage collector to delete the
// children of a parent without a finalize hook. The parent is a ConfigMap, because the collector
// discovers new resources after half a minute only.
func TestChildrenOfADeletedParentAreCollected(t *testing.T) {
	k := start(t)
	child := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "child"}}
	hook := k.Hook(func(kit.Request) any { return map[string]any{"children": []any{child}} })
	k.Run(kit.Composite{
		Parent:   "v1/configmaps",
		Only:     map[string]any{"test": k.Name},
		Children: []string{"v1/secrets InPlace"},
		Sync:     hook.URL,
	})
	mark := k.Mark()
	k.Object("v1/ConfigMap", "parent").Label("test", k.Name).Apply()
	await(k, "v1/Secret", "child", "metadata.name", "child")
	k.Delete("v1/ConfigMap", "parent")
	await(k, "v1/Secret", "child", "metadata.name", "")
	// The collector may delete the child before the engine has the event of the parent's deletion:
	// then it is created and collected once more.
	for _, write := range k.ChildWrites(mark) {
		if write != "create secrets child" {
			t.Errorf("the engine's write is %q, expected only creations", write)
		}
	}
}

func TestClusterScopedParentHasNamespacedChild(t *testing.T) {
	k := start(t)
	k.CRD("Site", "Cluster")
	k.Run(kit.Composite{Parent: "sites", Children: []string{"v1/configmaps InPlace"}, Sync: mirror(t)})
	k.Apply(
		"{apiVersion: $GROUP/v1, kind: Site, metadata: {name: site}, spec: {answer: {status: {phase: up}, children: [" +
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: page, namespace: $NS}, data: {text: one}}]}}}",
	)
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitOwner(k, "page", "site")
	await(k, "Site", "site", "status.phase", "up")
	k.Delete("v1/ConfigMap", "page")
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}

// TestTakenNameIsLeftAlone has two parents with the same child. The second reports the owner, and
// gets the child after the first drops it.
func TestTakenNameIsLeftAlone(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{})
	k.Apply(parent("first", page("page", "text: first")))
	awaitOwner(k, "page", "first")
	uid := k.Get("v1/ConfigMap", "page").GetUID()
	k.Apply(parent("second", page("page", "text: second")))
	k.AwaitFault("Web", "second", "ChildNameTaken", `is controlled by Web "first"`)
	if got := k.Get("v1/ConfigMap", "page"); got.GetUID() != uid ||
		field(k, "v1/ConfigMap", "page", "data.text") != "first" {
		t.Error("the ConfigMap was changed")
	}
	k.Apply(parent("first"))
	awaitOwner(k, "page", "second")
	k.AwaitSynced("Web", "second")
}
