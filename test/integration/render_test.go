package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// rendered holds the fields of the output of `hookloop render -o json` that the tests read.
type rendered struct {
	Parents []struct {
		Status map[string]any `json:"status"`
	} `json:"parents"`
	Writes []struct {
		Verb      string `json:"verb"`
		Kind      string `json:"kind"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"writes"`
	Changes []struct {
		After map[string]any `json:"after"`
	} `json:"changes"`
}

// renderer runs `hookloop render --live` as a user of the cluster.
type renderer struct {
	*kit.Kit
	user, kubeconfig, controller string
}

// newRenderer makes a user without rights, a kind Page with one Page that has a ConfigMap, and a
// controller that no engine runs.
func newRenderer(t *testing.T) *renderer {
	t.Helper()
	k := kit.New(t)
	k.CRD("Page", "Namespaced")
	k.Object("Page", "page").Set("spec.text", "old").Apply()
	hook := k.Hook(func(r kit.Request) any {
		text, _, _ := unstructured.NestedString(r.Parent.Object, "spec", "text")
		return map[string]any{"status": map[string]any{"text": text}, "children": []any{map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "page"},
			"data": map[string]any{"text": text},
		}}}
	})
	r := &renderer{Kit: k, user: "render-" + k.Name, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	r.controller = r.file("controller.yaml", `apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: pages}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks: {sync: {version: v2, webhook: {url: "`+hook.URL+`"}}}
`)
	config, err := k.Cluster.User(r.user)
	if err != nil {
		t.Fatal(err)
	}
	if err := cluster.WriteKubeconfig(config, r.kubeconfig); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *renderer) file(name, text string) string {
	r.Helper()
	path := filepath.Join(r.TempDir(), name)
	if err := os.WriteFile(path, []byte(r.Expand(text)), 0o600); err != nil {
		r.Fatal(err)
	}
	return path
}

// render runs the command, and returns its result or its error message.
func (r *renderer) render(args ...string) (result rendered, fault string) {
	r.Helper()
	args = append([]string{
		"render", "-o", "json", "--live", "--kubeconfig", r.kubeconfig, "-f", r.controller, "--until-settled",
	}, args...)
	program := exec.CommandContext(r.Context(), serve.Program("hookloop"), args...)
	var out, faults bytes.Buffer
	program.Stdout = &out
	program.Stderr = &faults
	if err := program.Run(); err != nil {
		return result, faults.String()
	}
	if err := json.Unmarshal(out.Bytes(), &result); err != nil {
		r.Fatal(err)
	}
	return result, ""
}

// noRight begins the message about a right that is missing.
const noRight = "hookloop: --live: no right to list "

// TestRenderLive renders objects of the cluster with the rights to read them and no other. The
// ConfigMap has the uid of the Page as its owner, so that it is its child.
func TestRenderLive(t *testing.T) {
	r := newRenderer(t)
	_, fault := r.render()
	if !strings.HasPrefix(fault, noRight+"customresourcedefinitions.apiextensions.k8s.io in all namespaces: ") ||
		!strings.Contains(fault, r.user) || strings.Count(fault, "\n") != 1 {
		t.Errorf("without rights: %q, want one line with the right and the user", fault)
	}
	r.Apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + r.user + `}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
- {apiGroups: [$GROUP], resources: [pages], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: ` + r.user + `}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: ` + r.user + `}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: ` + r.user + `}]
`)
	r.Eventually("the fault about children", func() error { // the API server needs time to see the role
		if _, fault := r.render(); !strings.HasPrefix(fault, noRight+"configmaps in all namespaces: ") {
			return fmt.Errorf("render: %q", fault)
		}
		return nil
	})
	r.Apply(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: ` + r.user + `}
rules:
- {apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, list, watch]}
- {apiGroups: [$GROUP], resources: [pages], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}
`)
	page := r.Get("Page", "page")
	r.Apply(`apiVersion: v1
kind: ConfigMap
metadata:
  name: page
  namespace: $NS
  labels: {controller-uid: ` + string(page.GetUID()) + `}
  ownerReferences:
  - {apiVersion: $GROUP/v1, kind: Page, name: page, uid: ` + string(page.GetUID()) + `, controller: true}
data: {text: older, more: stays}
`)
	mark := r.Mark()
	var result rendered
	r.Eventually("the rights", func() error {
		result, fault = r.render()
		if fault != "" {
			return fmt.Errorf("render: %q", fault)
		}
		return nil
	})
	r.expect(result, "update ConfigMap $NS/page", "status Page $NS/page")
	data := result.Changes[0].After["data"].(map[string]any)
	if data["text"] != "old" || data["more"] != "stays" {
		t.Errorf("the ConfigMap has %v, want the Page's text beside the other's", data)
	}
	changed := r.file("page.yaml",
		"apiVersion: $GROUP/v1\nkind: Page\nmetadata: {name: page, namespace: $NS}\nspec: {text: new}\n")
	result, fault = r.render("-f", changed)
	if fault != "" {
		t.Fatal(fault)
	}
	r.expect(result, "update ConfigMap $NS/page", "status Page $NS/page")
	if after := result.Parents[0].Status; after["text"] != "new" || after["observedGeneration"] != 2.0 {
		t.Errorf("the Page of the file has the status %v, want its text, at the next generation", after)
	}
	writes, err := r.Cluster.Writes(mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range writes {
		if w.User == r.user || strings.HasPrefix(w.UserAgent, "hookloop-render") {
			t.Errorf("a write was sent: %s", w)
		}
	}
	if present := r.Get("Page", "page"); present.GetResourceVersion() != page.GetResourceVersion() {
		t.Errorf("the Page has changed: %v", present)
	}
}

// expect compares the writes.
func (r *renderer) expect(result rendered, want ...string) {
	r.Helper()
	var got []string
	for _, w := range result.Writes {
		got = append(got, fmt.Sprintf("%s %s %s/%s", w.Verb, w.Kind, w.Namespace, w.Name))
	}
	if text := r.Expand(strings.Join(want, ", ")); strings.Join(got, ", ") != text {
		r.Fatalf("writes %q, want %q", strings.Join(got, ", "), text)
	}
}
