package integration

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// inputSecret returns an input of the parent web in YAML.
func inputSecret(name string) string {
	return "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name + ", namespace: $NS, labels: {app: web}}\n"
}

func secretKey(k *kit.Kit, name string) string { return "Secret/" + k.Namespace + "/" + name }

// secrets applies a number of inputs: in-000, in-001, ….
func secrets(k *kit.Kit, n int) {
	k.Helper()
	for i := range n {
		k.Apply(inputSecret(fmt.Sprintf("in-%03d", i)))
	}
}

// mapped returns a parent of a map controller, which selects the secrets.
const mapped = "apiVersion: $GROUP/v1\nkind: Web\nmetadata: {name: web, namespace: $NS, labels: {mapped: 'yes'}}\n" +
	"spec: {selector: {matchLabels: {app: web}}}"

// runMap starts a map controller of Webs, with secrets as inputs and ConfigMaps as outputs.
func runMap(k *kit.Kit, m kit.Mapping) {
	k.Helper()
	k.CRD("Web", "Namespaced")
	m.Parent = "webs"
	m.Inputs = []string{"v1/secrets"}
	m.Only = map[string]any{"mapped": "yes"}
	if m.Outputs == nil {
		m.Outputs = []string{"v1/configmaps InPlace"}
	}
	k.RunMap(m)
}

// awaitStatus waits until the status of the parent web, without its conditions, is as in YAML, and
// the condition Synced has a status.
func awaitStatus(k *kit.Kit, synced, want string) {
	k.Helper()
	expected := decoded(k, want)
	k.Eventually("the status of the parent is "+want, func() error {
		web := k.Get("Web", "web")
		status, _, _ := unstructured.NestedMap(web.Object, "status")
		delete(status, "conditions")
		data, err := json.Marshal(status)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(expected, decoded(k, string(data))); diff != "" {
			return fmt.Errorf("-want +got:\n%s", diff)
		}
		if got := kit.Condition(web, "Synced"); got["status"] != synced {
			return fmt.Errorf("condition Synced is %v, want %s", got, synced)
		}
		return nil
	})
}

// decoded decodes YAML or JSON.
func decoded(k *kit.Kit, text string) map[string]any {
	k.Helper()
	var value map[string]any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		k.Fatal(err)
	}
	return value
}

// TestMapStatus sums up the parts of a parent: inputs, outputs and their conditions, failures and
// outputs that have lost their input.
func TestMapStatus(t *testing.T) {
	k := start(t)
	k.CRD("Page", "Namespaced")
	hook := k.Hook(func(r kit.Request) any {
		if r.Input == nil { // a tombstone keeps everything
			var kept []any
			for _, o := range r.Outputs["Page."+k.Group+"/v1"] {
				kept = append(kept, o)
			}
			return map[string]any{"outputs": kept}
		}
		input := unstructured.Unstructured{Object: r.Input}
		if input.GetAnnotations()["break"] != "" {
			return kit.Answer{Code: 500, Body: "broken"}
		}
		return map[string]any{"outputs": []any{map[string]any{
			"apiVersion": k.Group + "/v1", "kind": "Page", "metadata": map[string]any{"name": "of-" + input.GetName()},
		}}}
	})
	runMap(k, kit.Mapping{Map: hook.URL, Tombstone: hook.URL, Outputs: []string{"$GROUP/v1/pages InPlace"}})
	secrets(k, 3)
	k.Apply(mapped)
	awaitStatus(k, "True", "{observedGeneration: 1, inputs: {secrets: {total: 3}}, outputs: {pages: {total: 3}}}")

	k.Patch("Page", "of-in-000", "status: {conditions: [{type: Ready, status: 'True'}]}", "status")
	k.Patch("Page", "of-in-001", "status: {conditions: [{type: Ready, status: 'False'}]}", "status")
	k.Object("v1/Secret", "other").Apply()
	awaitStatus(k, "True", `{observedGeneration: 1, inputs: {secrets: {total: 3}},
		outputs: {pages: {total: 3, ready: 1}}}`)

	k.Delete("v1/Secret", "in-000")
	awaitStatus(k, "True", `{observedGeneration: 1, inputs: {secrets: {total: 2}}, outputs: {pages: {total: 3, ready: 1}},
		detached: {groups: 1, outputs: 1}}`)

	k.Patch("v1/Secret", "in-001", "metadata: {annotations: {break: 'yes'}}")
	k.Eventually("the failure is in the status", func() error {
		web := k.Get("Web", "web")
		first, _, _ := unstructured.NestedSlice(web.Object, "status", "failed", "first")
		if len(first) != 1 {
			return fmt.Errorf("failed is %v", first)
		}
		got := first[0].(map[string]any)
		if got["input"] != secretKey(k, "in-001") || got["reason"] != "HookFailed" ||
			!strings.Contains(fmt.Sprint(got["message"]), "broken") {
			return fmt.Errorf("failed is %v", got)
		}
		synced := kit.Condition(web, "Synced")
		if synced["status"] != "False" || !strings.Contains(fmt.Sprint(synced["message"]), secretKey(k, "in-001")) {
			return fmt.Errorf("Synced is %v", synced)
		}
		return nil
	})
	k.Eventually("there is an Event of the failure", func() error {
		if messages := strings.Join(k.Events("web", "SyncError"), "; "); !strings.Contains(messages, secretKey(k, "in-001")) {
			return fmt.Errorf("the Events are %s", messages)
		}
		return nil
	})
	k.Patch("v1/Secret", "in-001", "metadata: {annotations: {break: null}}")
	awaitStatus(k, "True", `{observedGeneration: 1, inputs: {secrets: {total: 2}}, outputs: {pages: {total: 3, ready: 1}},
		detached: {groups: 1, outputs: 1}}`)

	k.Patch("Web", "web", "spec: {selector: {matchLabels: {app: none}}}")
	awaitStatus(k, "True", `{observedGeneration: 2, inputs: {secrets: {total: 0}}, outputs: {pages: {total: 3, ready: 1}},
		detached: {groups: 3, outputs: 3}}`)
}

// TestMapParentWithoutAStatus has parents of a built-in kind: their status is not the engine's, and
// is not written.
func TestMapParentWithoutAStatus(t *testing.T) {
	k := start(t)
	k.RunMap(kit.Mapping{
		Parent: "apps/v1/deployments", Only: map[string]any{"test": k.Name}, Inputs: []string{"v1/secrets"},
		Outputs: []string{"v1/configmaps InPlace"}, Map: k.Hook(copies).URL,
	})
	secrets(k, 2)
	mark := k.Mark()
	k.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  namespace: $NS
  labels:
    test: $NAME
spec:
  replicas: 0
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: c
        image: nginx
`)
	await(k, "v1/ConfigMap", "copy-sec-in-001", "data.text", "copied")
	k.Settled(settled)
	if n := kit.Count(k.Writes(mark), "patch", "deployments/status"); n != 0 {
		t.Errorf("%d writes of the status of a Deployment, want none", n)
	}
}

// TestMapManyInputs builds a parent of 1,000 inputs: the status shows the progress, and is written
// at most once a second. One input that is edited later costs one question and no status.
func TestMapManyInputs(t *testing.T) {
	const n = 1000
	k := start(t)
	hook := k.Hook(copies)
	runMap(k, kit.Mapping{Map: hook.URL})
	secrets(k, n)
	history := k.History("Web")
	mark := k.Mark()
	begun := time.Now()
	k.Apply(mapped)
	k.EventuallyWithin(4*time.Minute, "all outputs exist", func() error {
		if got := field(k, "Web", "web", "status.outputs.configmaps.total"); got != fmt.Sprint(n) {
			return fmt.Errorf("%s outputs", got)
		}
		return nil
	})
	awaitStatus(k, "True", fmt.Sprintf(
		"{observedGeneration: 1, inputs: {secrets: {total: %d}}, outputs: {configmaps: {total: %d}}}", n, n))
	progress := 0
	for _, v := range history.Versions() {
		if _, found, _ := unstructured.NestedMap(v.Object, "status", "progress"); found {
			progress++
		}
	}
	if progress == 0 {
		t.Error("no status showed the progress")
	}
	checkStatusInterval(t, begun, k.Writes(mark))

	asked := awaitUnasked(k, hook, "web")
	mark = k.Settled(settled)
	k.Patch("v1/Secret", "in-500", "metadata: {annotations: {edited: 'yes'}}")
	k.Eventually("the hook is asked about the input", func() error {
		if hook.Asked("web") == asked {
			return fmt.Errorf("not yet")
		}
		return nil
	})
	k.Settled(settled)
	if got, writes := awaitUnasked(k, hook, "web")-asked, k.Writes(mark); got != 1 || len(writes) > 0 {
		t.Errorf("an edited input cost %d questions and the writes %v, want 1 and none", got, writes)
	}
}

// awaitUnasked waits until the hook has got no question about a parent for some time, and returns
// the number of its questions.
func awaitUnasked(k *kit.Kit, hook *kit.Hook, parent string) (asked int) {
	k.Helper()
	since := time.Now()
	k.Eventually("no question for "+settled.String(), func() error {
		if now := hook.Asked(parent); now != asked {
			asked = now
			since = time.Now()
		}
		if time.Since(since) < settled {
			return fmt.Errorf("it was asked %d times", asked)
		}
		return nil
	})
	return asked
}

// checkStatusInterval checks that the parent's status was written at most once a second on average
// from its beginning. The times are those of the API server, which may be late for some of the
// writes.
func checkStatusInterval(t *testing.T, begun time.Time, writes []cluster.Write) {
	t.Helper()
	writes = slices.DeleteFunc(writes, func(w cluster.Write) bool {
		return w.Resource != "webs" || w.Subresource != "status"
	})
	t.Logf("%d writes of the status", len(writes))
	during := writes[len(writes)-1].Time.Sub(begun)
	if most := int(during/time.Second) + 3; len(writes) > most {
		t.Errorf("%d writes of the status within %s, want at most %d", len(writes), during, most)
	}
}
