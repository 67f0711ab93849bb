package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// copies answers one ConfigMap for each input, named after its kind and name.
func copies(r kit.Request) any {
	kind, name, _ := strings.Cut(r.MapKey, "/")
	name = name[strings.LastIndex(name, "/")+1:]
	return map[string]any{"outputs": []any{configMap("copy-"+strings.ToLower(kind[:3])+"-"+name, "copied")}}
}

// TestMapControllerWithInputThatIsNotServed runs without it: the condition names it, and the other
// inputs are mapped, also when it ceases to be served. Its objects are mapped while it is served.
func TestMapControllerWithInputThatIsNotServed(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	k.DeclareMap(kit.Mapping{
		Parent: "webs", Inputs: []string{"v1/secrets", "$GROUP/v1/balls"}, Outputs: []string{"v1/configmaps InPlace"},
		Map: k.Hook(copies).URL,
	})
	k.AwaitReadyOf(kit.MapController, v1alpha1.ReasonInputNotFound)
	problem := k.Expand("spec.inputResources[1]: the API server does not serve balls.$GROUP/v1; its objects are inputs " +
		"when it does")
	k.AwaitEventOf(k.Name, v1alpha1.ReasonInputNotFound, problem)
	ready := kit.Condition(k.Get(kit.MapController, k.Name), v1alpha1.ConditionReady)
	if ready["status"] != "True" || !strings.Contains(fmt.Sprint(ready["message"]), problem) {
		t.Errorf("the condition is %v, want True with %q", ready, problem)
	}
	k.Apply(parent("web"))
	k.Object("v1/Secret", "one").Apply()
	await(k, "v1/ConfigMap", "copy-sec-one", "data.text", "copied")
	k.CRD("Ball", "Namespaced")
	k.AwaitReadyOf(kit.MapController, v1alpha1.ReasonRunning)
	k.Object("Ball", "red").Apply()
	await(k, "v1/ConfigMap", "copy-bal-red", "data.text", "copied")
	k.Delete("apiextensions.k8s.io/v1/CustomResourceDefinition", "balls."+k.Group)
	k.AwaitReadyOf(kit.MapController, v1alpha1.ReasonInputNotFound)
	k.Object("v1/Secret", "two").Apply()
	await(k, "v1/ConfigMap", "copy-sec-two", "data.text", "copied")
}

// TestMapControllersThatAreRefused by their condition, with the field in the message.
func TestMapControllersThatAreRefused(t *testing.T) {
	parallel(t)
	for name, c := range map[string]struct {
		mapping         kit.Mapping
		reason, message string
	}{
		"a cluster-scoped input of a namespaced parent": {
			kit.Mapping{Inputs: []string{"v1/nodes"}}, v1alpha1.ReasonInvalidSpec,
			"spec.inputResources[0]: nodes.v1 is cluster-scoped and the parent webs.$GROUP/v1 is namespaced; " +
				"expected a namespaced resource",
		},
		"a cluster-scoped output of a namespaced parent": {
			kit.Mapping{Inputs: []string{"v1/secrets"}, Outputs: []string{"v1/namespaces"}}, v1alpha1.ReasonInvalidSpec,
			"spec.outputResources[0]: namespaces.v1 is cluster-scoped and the parent webs.$GROUP/v1 is namespaced; " +
				"expected a namespaced resource",
		},
		"an input twice": {
			kit.Mapping{Inputs: []string{"apps/v1/deployments", "apps/v1beta1/deployments"}}, v1alpha1.ReasonInvalidSpec,
			`spec.inputResources[1]: Duplicate value: "deployments.apps"`,
		},
		"another version of the parent as input": {
			kit.Mapping{Inputs: []string{"$GROUP/v2/webs"}}, v1alpha1.ReasonInvalidSpec,
			"spec.inputResources[0]: Forbidden: must not be the parent's resource: every parent would be its own input",
		},
		"an output that is not served": {
			kit.Mapping{Inputs: []string{"v1/secrets"}, Outputs: []string{"$GROUP/v1/balls"}}, v1alpha1.ReasonChildNotFound,
			"spec.outputResources[0]: the API server does not serve balls.$GROUP/v1; the controller starts when it does",
		},
		"a parent that is not served": {
			kit.Mapping{Parent: "balls", Inputs: []string{"v1/secrets"}}, v1alpha1.ReasonParentNotFound,
			"spec.parentResource: the API server does not serve balls.$GROUP/v1; the controller starts when it does",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			k.CRD("Web", "Namespaced")
			if c.mapping.Parent == "" {
				c.mapping.Parent = "webs"
			}
			c.mapping.Map = mirror(t)
			k.DeclareMap(c.mapping)
			k.AwaitReadyOf(kit.MapController, c.reason)
			ready := kit.Condition(k.Get(kit.MapController, k.Name), v1alpha1.ConditionReady)
			if want := k.Expand(c.message); ready["message"] != want {
				t.Errorf("the message is\n%v\nwant\n%s", ready["message"], want)
			}
		})
	}
}

// TestMapControllerIsChecked by the API server itself.
func TestMapControllerIsChecked(t *testing.T) {
	k := start(t)
	for part, want := range map[string]string{
		"inputResources: []": "spec.inputResources in body should have at least 1 items",
		"inputResources: [{apiVersion: $GROUP/v1, resource: webs}]": "must not contain the parent's resource: " +
			"every parent would be its own input",
		"outputResources: [{apiVersion: v1, resource: pods, updateStrategy: {method: RollingInPlace}}]": "outputs have " +
			"no rolling updates: must be OnDelete, Recreate or InPlace",
		"hooks: {tombstone: {webhook: {url: 'http://a/'}}}": "hooks.map must be set: without it no input can be mapped",
	} {
		spec := map[string]string{
			"parentResource": "{apiVersion: $GROUP/v1, resource: webs}",
			"inputResources": "[{apiVersion: v1, resource: secrets}]",
			"hooks":          "{map: {webhook: {url: 'http://a/'}}}",
		}
		field, value, _ := strings.Cut(part, ": ")
		spec[field] = value
		text := "apiVersion: metacontroller.k8s.io/v1alpha1\nkind: MapController\nmetadata: {name: $NAME}\nspec:\n"
		for field, value := range spec {
			text += "  " + field + ": " + value + "\n"
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(k.Expand(text)), o); err != nil {
			t.Fatal(err)
		}
		if err := k.TryApply(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", part, err, want)
		}
	}
}

// TestColumnsOfMapControllers: kubectl's table shows the parent, the inputs and the condition.
func TestColumnsOfMapControllers(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	k.RunMap(kit.Mapping{
		Parent: "webs", Inputs: []string{"v1/secrets", "apps/v1/deployments"}, Outputs: []string{"v1/configmaps"},
		Map: mirror(t),
	})
	k.Eventually("the summary is in the status", func() error {
		o := k.Get(kit.MapController, k.Name)
		for field, want := range map[string]string{
			"parents": "webs", "inputs": "secrets, deployments", "children": "configmaps",
		} {
			if got, _, _ := unstructured.NestedString(o.Object, "status", field); got != want {
				return fmt.Errorf("status.%s is %q, want %q", field, got, want)
			}
		}
		return nil
	})
	out, err := k.Cluster.Kubectl(t.Context(), "get", "mc", k.Name)
	if err != nil {
		t.Fatalf("kubectl get mc: %v\n%s", err, out)
	}
	table := strings.Join(strings.Fields(out), " ")
	want := "NAME PARENT INPUTS READY REASON INTERCEPTED ANSWERED BY AGE " + k.Name +
		" webs secrets, deployments True Running "
	if !strings.HasPrefix(table, want) {
		t.Errorf("the table is %q, want %q and the age", table, want)
	}
}
