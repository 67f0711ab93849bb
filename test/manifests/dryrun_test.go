package manifests

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
)

// renderings are all ways to install.
var renderings = map[string]func(*testing.T) string{
	"production":                    func(t *testing.T) string { return kustomize(t, "production") },
	"dev":                           func(t *testing.T) string { return kustomize(t, "dev") },
	"wildcard":                      func(t *testing.T) string { return kustomize(t, "wildcard") },
	"gateway":                       func(t *testing.T) string { return kustomize(t, "gateway") },
	"the chart":                     func(t *testing.T) string { return chart(t) },
	"the chart with all values set": func(t *testing.T) string { return chart(t, allValues) },
	"the chart without RBAC": func(t *testing.T) string {
		return chart(t, "--set=rbac.create=false,serviceAccount.create=false")
	},
	"the chart without its own probes": func(t *testing.T) string {
		return chart(t, "--set=commandArgs={--health-probe-bind-address=0}")
	},
}

// TestTheAPIServerTakesIt applies all objects by a dry run with strict field validation.
func TestTheAPIServerTakesIt(t *testing.T) {
	for name, render := range renderings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := kit.New(t)
			dryRun(k, t, render(t))
		})
	}
}

// dryRun applies a text without effect. It creates the namespaces before, because a dry run creates
// none.
func dryRun(k *kit.Kit, t *testing.T, text string) {
	t.Helper()
	for _, o := range objects(t, text) {
		if namespace := o.GetNamespace(); namespace != "" {
			k.Apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: " + namespace + "}")
		}
	}
	file := filepath.Join(t.TempDir(), "rendered.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := k.Cluster.Kubectl(t.Context(),
		"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-f", file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out, "Warning") {
		t.Errorf("kubectl warns:\n%s", out)
	}
}

// TestPodsAreRestricted creates a Pod of each workload's template, as a dry run, in a namespace for
// restricted Pods only.
func TestPodsAreRestricted(t *testing.T) {
	for name, render := range renderings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := restricted(t)
			if err := createPod(t, k, workload(t, objects(t, render(t)))); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("the check sees a Pod that is not", func(t *testing.T) {
		t.Parallel()
		k := restricted(t)
		err := createPod(t, k, workload(t, objects(t, chart(t, "--set=securityContext.allowPrivilegeEscalation=true"))))
		if err == nil || !strings.Contains(err.Error(), "allowPrivilegeEscalation") {
			t.Errorf("creating the Pod gives %v, want an error that names allowPrivilegeEscalation", err)
		}
	})
}

// restricted makes a Kit with a namespace for restricted Pods only.
func restricted(t *testing.T) *kit.Kit {
	t.Helper()
	k := kit.New(t)
	k.Apply(
		`{apiVersion: v1, kind: Namespace, metadata: {name: $NS, labels: {pod-security.kubernetes.io/enforce: restricted}}}`)
	k.Eventually("the namespace has its ServiceAccount", func() error {
		_, err := k.Lookup("v1/ServiceAccount", "default")
		return err
	})
	return k
}

// createPod creates a Pod of a workload's template in the kit's namespace, as a dry run.
func createPod(t *testing.T, k *kit.Kit, o *unstructured.Unstructured) error {
	t.Helper()
	content, found, err := unstructured.NestedMap(o.Object, "spec", "template")
	if !found || err != nil {
		t.Fatalf("%s %s has no template: %v", o.GetKind(), o.GetName(), err)
	}
	template := &corev1.PodTemplateSpec{}
	into(t, content, template)
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Name = "of-the-template"
	pod.Spec.ServiceAccountName = "" // its ServiceAccount is in another namespace
	_, err = kubernetes.NewForConfigOrDie(k.Cluster.Admin()).CoreV1().Pods(k.Namespace).
		Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// TestDocumentedYAML applies the YAML of docs/guides/install.md by the same dry run.
func TestDocumentedYAML(t *testing.T) {
	data, err := os.ReadFile(path("..", "docs", "guides", "install.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(data), "```yaml\n")[1:]
	if len(blocks) == 0 {
		t.Fatal("docs/guides/install.md has no YAML")
	}
	for i, block := range blocks {
		text, _, _ := strings.Cut(block, "```")
		t.Run(fmt.Sprint("block ", i+1), func(t *testing.T) {
			t.Parallel()
			dryRun(kit.New(t), t, served(text))
		})
	}
}

// served returns the documents for the API server: a Kustomization is for kustomize.
func served(text string) string {
	documents := slices.DeleteFunc(strings.Split(text, "\n---\n"), func(document string) bool {
		return strings.Contains(document, "\nkind: Kustomization\n")
	})
	return strings.Join(documents, "\n---\n")
}
