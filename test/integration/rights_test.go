package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestMissingRightsNameTheRole runs an engine with only the rights of the production manifests. The
// controller's condition has the ClusterRole that it needs. After this is applied unchanged, the
// controller starts automatically.
func TestMissingRightsNameTheRole(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	kubeconfig, err := k.Cluster.ServiceAccountKubeconfig(t.Context(), k.Namespace, "engine")
	if err != nil {
		t.Fatal(err)
	}
	bind := func(role string) {
		k.Apply("apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + role + "-$NAME}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\n" +
			"subjects: [{kind: ServiceAccount, name: engine, namespace: $NS}]")
		t.Cleanup(func() { k.Delete("rbac.authorization.k8s.io/v1/ClusterRoleBinding", role+"-"+k.Name) })
	}
	k.ApplyFile(filepath.Join(cluster.Root(), "manifests", "production", "engine-role.yaml"))
	bind("hookloop-engine")
	e, err := serve.Start(t.Context(), serve.Config{
		Kubeconfig: kubeconfig, Flags: []string{"--target-label-selector=" + own + ",test=" + k.Name},
	})
	if e != nil {
		k.Own(e.Process)
	}
	if err != nil {
		t.Fatal(err)
	}
	k.Declare(kit.Composite{
		Parent:   "webs",
		Children: []string{"v1/configmaps InPlace"},
		Sync:     mirror(t),
		Labels:   map[string]any{"engine": "own", "test": k.Name},
	})
	k.AwaitReady(v1alpha1.ReasonForbidden)
	message := fmt.Sprint(kit.Condition(k.Get(kit.CompositeController, k.Name), v1alpha1.ConditionReady)["message"])
	if want := "Hookloop may not get, list, watch webs." + k.Group + "; patch webs." + k.Group + "/status; " +
		"get, list, watch, create, update, patch, delete configmaps; "; !strings.HasPrefix(message, want) {
		t.Errorf("the condition is %q, want one that begins with %q", message, want)
	}
	_, role, _ := strings.Cut(message, "bind it: ")
	k.Apply(role)
	t.Cleanup(func() { k.Delete("rbac.authorization.k8s.io/v1/ClusterRole", "hookloop-composite-"+k.Name) })
	bind("hookloop-composite-" + k.Name)
	k.AwaitReady(v1alpha1.ReasonRunning)
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")
}
