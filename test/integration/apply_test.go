package integration

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// fleet returns children with fields that the server defaults: a Deployment, a Service and a
// ConfigMap, with a text and an image. more is added to the ConfigMap's data.
func fleet(text, image, more string) []string {
	return []string{
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: page, labels: {part: page}}, data: {text: " + text + more + "}}",
		"{apiVersion: v1, kind: Service, metadata: {name: server}, spec: {selector: {app: web}, ports: [{port: 80, " +
			"name: web}, {port: 443, name: tls, targetPort: 8443}]}}",
		"{apiVersion: apps/v1, kind: Deployment, metadata: {name: server}, spec: {selector: {matchLabels: {app: web}}, " +
			"template: {metadata: {labels: {app: web}}, " +
			"spec: {containers: [{name: server, image: " + image + ", ports: [{containerPort: 80}], " +
			"resources: {requests: {cpu: 1000m}}}]}}}}",
	}
}

var fleetKinds = []string{"v1/configmaps InPlace", "v1/services InPlace", "apps/v1/deployments InPlace"}

// uids returns the UIDs of the fleet.
func uids(k *kit.Kit) []types.UID {
	k.Helper()
	return []types.UID{
		k.Get("v1/ConfigMap", "page").GetUID(),
		k.Get("v1/Service", "server").GetUID(),
		k.Get("apps/v1/Deployment", "server").GetUID(),
	}
}

// TestSwapOfApplyStrategies runs the same parent and hook with dynamic apply, after a restart with
// server-side apply, and then back. No child is recreated, and no field is lost. Fields that the
// hook drops are removed, and fields of others stay. After each swap the engine writes only the
// record of the strategy.
func TestSwapOfApplyStrategies(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, labels := ownEngine(k)
	k.Run(kit.Composite{Parent: "webs", Children: fleetKinds, Sync: mirror(t), Labels: labels, Resync: 1})
	k.Apply(parent("web", fleet("one", "nginx:1", ", old: dynamic")...))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	await(k, "apps/v1/Deployment", "server", "spec.replicas", "1")
	k.Patch("v1/ConfigMap", "page", "data: {theirs: stays}")
	awaitSync(k, "web")
	before := uids(k)

	swap := func(e *serve.Engine, flags ...string) *serve.Engine {
		t.Helper()
		if err := e.Kill(); err != nil {
			t.Fatal(err)
		}
		mark := k.Mark()
		e, _ = ownEngine(k, flags...)
		awaitSync(k, "web")
		k.Settled(3 * time.Second) // three resync periods
		t.Logf("after the swap to %v: %q", flags, k.ChildWrites(mark))
		return e
	}
	change := func(text, image, more string, want map[string]any) {
		t.Helper()
		k.Apply(parent("web", fleet(text, image, more)...))
		await(k, "v1/ConfigMap", "page", "data.text", text)
		k.Eventually("the Deployment has the image "+image, func() error {
			containers, _, _ := unstructured.NestedSlice(k.Get("apps/v1/Deployment", "server").Object, "spec",
				"template", "spec", "containers")
			if got := containers[0].(map[string]any)["image"]; got != image {
				return fmt.Errorf("it has %v", got)
			}
			return nil
		})
		awaitSync(k, "web")
		if diff := cmp.Diff(want, k.Get("v1/ConfigMap", "page").Object["data"]); diff != "" {
			t.Errorf("data (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(before, uids(k)); diff != "" {
			t.Errorf("a child was recreated (-before +after):\n%s", diff)
		}
		k.Settled(3 * time.Second)
	}

	engine = swap(engine, "--apply-strategy=server-side-apply")
	const lastApplied = "metacontroller.k8s.io/last-applied-configuration"
	if note := k.Get("v1/ConfigMap", "page").GetAnnotations()[lastApplied]; note != "" {
		t.Errorf("dynamic apply's annotation is left: %s", note)
	}
	change("two", "nginx:2", ", new: serverside", map[string]any{"text": "two", "new": "serverside", "theirs": "stays"})
	change("three", "nginx:3", "", map[string]any{"text": "three", "theirs": "stays"})
	change("four", "nginx:4", ", old: serverside", map[string]any{"text": "four", "old": "serverside", "theirs": "stays"})

	engine = swap(engine)
	change("five", "nginx:5", "", map[string]any{"text": "five", "theirs": "stays"})
	engine = swap(engine, "--apply-strategy=server-side-apply")
	change("six", "nginx:6", "", map[string]any{"text": "six", "theirs": "stays"})
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
}

// TestServerSideApply follows one child: it is created, is left alone while nothing differs (also
// after a restart), is repaired, and is never taken from another owner.
func TestServerSideApply(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, labels := ownEngine(k, "--apply-strategy=server-side-apply", "--apply-strategy-ssa-field-manager=tester")
	k.Run(kit.Composite{Parent: "webs", Children: fleetKinds, Sync: mirror(t), Labels: labels, Resync: 1})
	mark := k.Mark()
	k.Apply(parent("web", fleet("one", "nginx:1", "")...))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
	awaitSync(k, "web")
	k.Settled(3 * time.Second)
	for _, m := range k.Get("apps/v1/Deployment", "server").GetManagedFields() {
		if m.Manager == "tester" && m.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("the field manager has an entry of operation %s", m.Operation)
		}
	}
	t.Logf("to make the children: %q", k.ChildWrites(mark))

	mark = k.Mark()
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitSync(k, "web")
	k.Settled(3 * time.Second)
	// The server stores a cpu of 1000m as 1: without memory the engine needs one dry run.
	if got := k.ChildWrites(mark); len(got) > 1 || len(got) == 1 && got[0] != "patch deployments server" {
		t.Errorf("after a restart: %q", got)
	}

	for name, row := range map[string]struct{ patch, path, want string }{
		"a value":      {"data: {text: theirs}", "data.text", "one"},
		"metadata":     {"metadata: {labels: {part: null}}", "metadata.labels.part", "page"},
		"what we have": {"data: null", "data.text", "one"},
	} {
		k.Patch("v1/ConfigMap", "page", row.patch)
		await(k, "v1/ConfigMap", "page", row.path, row.want)
		t.Logf("%s was repaired", name)
	}

	k.Object("v1/ConfigMap", "theirs").Set("data.text", "theirs").Apply()
	k.Apply(parent("other", page("theirs", "text: ours")))
	k.AwaitFault("Web", "other", "ChildNameTaken", "has no controller and is not selected by the parent")
	if got := field(k, "v1/ConfigMap", "theirs", "data.text"); got != "theirs" {
		t.Errorf("another owner's object has %q", got)
	}
}

// TestServerSideRecreate deletes only for changes that the server would apply.
func TestServerSideRecreate(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	engine, labels := ownEngine(k, "--apply-strategy=server-side-apply")
	k.Run(kit.Composite{Parent: "webs", Children: []string{
		"v1/configmaps Recreate", "v1/services Recreate", "apps/v1/deployments Recreate",
	}, Sync: mirror(t), Labels: labels, Resync: 1})
	k.Apply(parent("web", fleet("one", "nginx:1", "")...))
	await(k, "apps/v1/Deployment", "server", "spec.replicas", "1")
	awaitSync(k, "web")
	k.Settled(3 * time.Second)
	before := uids(k)
	if err := engine.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := engine.Restart(); err != nil {
		t.Fatal(err)
	}
	awaitSync(k, "web")
	k.Settled(3 * time.Second)
	if after := uids(k); !slices.Equal(before, after) {
		t.Errorf("children were recreated: %v, then %v", before, after)
	}
	mark := k.Mark()
	k.Apply(parent("web", fleet("two", "nginx:1", "")...))
	await(k, "v1/ConfigMap", "page", "data.text", "two")
	k.Settled(time.Second)
	if diff := cmp.Diff([]string{"delete configmaps page", "create configmaps page", "patch configmaps page"},
		k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}
