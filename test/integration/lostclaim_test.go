package integration

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/faultproxy"
	"github.com/hookloop/hookloop/test/kit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestLostClaim loses the PATCH that follows the POST of server-side apply. The child counts as
// created, it is applied in place as soon as possible, and it is not recreated although the server
// stores its values in another notation.
func TestLostClaim(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	_, proxy, labels := engineThroughProxy(k, "--apply-strategy=server-side-apply")
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/limitranges Recreate"}, Sync: mirror(t), Labels: labels})
	proxy.Set(faultproxy.Fault{
		Share: 1, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
		Matches: func(r *http.Request) bool {
			return r.Method == http.MethodPatch && r.URL.Path == "/api/v1/namespaces/"+k.Namespace+"/limitranges/limits"
		},
	})
	mark := k.Mark()
	k.Apply(
		parent(
			"web",
			"{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, "+
				"max: {cpu: 1000m}}]}}",
		),
	)
	k.AwaitFault("Web", "web", "WriteInternalError", "limits")
	uid := k.Get("v1/LimitRange", "limits").GetUID()
	proxy.Set()
	k.Eventually("the child is applied", func() error {
		o, err := k.Lookup("v1/LimitRange", "limits")
		if err != nil {
			return err
		}
		for _, m := range o.GetManagedFields() {
			if m.Manager == "metacontroller" && m.Operation == metav1.ManagedFieldsOperationApply {
				return nil
			}
		}
		return fmt.Errorf("its managers are %v", o.GetManagedFields())
	})
	k.Settled(settled)
	if k.Get("v1/LimitRange", "limits").GetUID() != uid {
		t.Error("the child was recreated")
	}
	verbs := map[string]int{}
	for _, w := range k.Writes(mark) {
		if w.Resource == "limitranges" {
			verbs[w.Verb]++
		}
	}
	if verbs["patch"] == 0 || verbs["patch"] > 2 {
		t.Errorf("writes %v, want at most two patches that finish the claim", verbs)
	}
	delete(verbs, "patch")
	if diff := cmp.Diff(map[string]int{"create": 1}, verbs); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestDriftOfStringData restores a Secret's data after a change by a user, although the hook sets
// stringData.
func TestDriftOfStringData(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Children: []string{"v1/secrets InPlace"}})
	k.Apply(parent("web", "{apiVersion: v1, kind: Secret, metadata: {name: word}, stringData: {word: ours}}"))
	await(k, "v1/Secret", "word", "data.word", "b3Vycw==")
	awaitSync(k, "web")
	k.Patch("v1/Secret", "word", "data: {word: dGhlaXJz}")
	await(k, "v1/Secret", "word", "data.word", "b3Vycw==")
	k.NoWrites(func() { k.Settled(settled) })
}

// TestSparedChildOfAnOlderParentVersion moves a controller to another version of its parents. A
// child that a dry run has spared stays as it is, although its owner reference has the version
// before.
func TestSparedChildOfAnOlderParentVersion(t *testing.T) {
	k := start(t)
	k.Apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: webs.$GROUP}
spec:
  group: $GROUP
  scope: Namespaced
  names: {kind: Web, plural: webs, singular: web}
  versions:
  - &version
    name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
  - {<<: *version, name: v2, storage: false}
`)
	_, labels := ownEngine(k, "--apply-strategy=server-side-apply")
	controller := kit.Composite{
		Parent:   "webs",
		Children: []string{"v1/limitranges Recreate"},
		Sync:     mirror(t),
		Labels:   labels,
	}
	k.Run(controller)
	k.Apply(
		parent(
			"web",
			"{apiVersion: v1, kind: LimitRange, metadata: {name: limits}, spec: {limits: [{type: Container, "+
				"max: {cpu: 1000m}}]}}",
		),
	)
	awaitSync(k, "web")
	k.Settled(settled)
	mark := k.Mark()
	uid := k.Get("v1/LimitRange", "limits").GetUID()
	controller.Parent = k.Group + "/v2/webs"
	k.Declare(controller)
	k.Eventually("the server was asked about the child", func() error {
		if decided(k, mark) == 0 {
			return fmt.Errorf("it was not")
		}
		return nil
	})
	k.AwaitReady("Running")
	k.Settled(settled)
	k.Patch("v1/LimitRange", "limits", "metadata: {annotations: {somebody: was here}}")
	awaitSync(k, "web")
	k.Settled(settled)
	if o := k.Find("v1/LimitRange", "limits"); o == nil || o.GetUID() != uid {
		t.Error("the child was recreated")
	}
	for _, line := range k.ChildWrites(mark) {
		t.Errorf("a write of a child: %s", line)
	}
}
