package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"github.com/hookloop/hookloop/test/serve"
)

// TestGraphCommand draws a Deployment with what its controllers make of it, and an object of a
// user's kind with its dependencies.
func TestGraphCommand(t *testing.T) {
	k := start(t)
	k.Apply(strings.Replace(hrad(""), "replicas: 0", "replicas: 1", 1))
	var drawn string
	k.Eventually("the Deployment with its ReplicaSet and Pod", func() error {
		drawn = draw(t, k, k.Cluster.Kubeconfig(), "deployment", "server")
		lines := strings.Split(drawn, "\n")
		for _, want := range []string{"Deployment server", "└─ ReplicaSet server-", "   └─ Pod server-"} {
			if !contains(lines, want) {
				return fmt.Errorf("there is no line %q in\n%s", want, drawn)
			}
		}
		return nil
	})
	k.Apply(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: links.$GROUP
spec:
  group: $GROUP
  scope: Namespaced
  names:
    kind: Link
    plural: links
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-preserve-unknown-fields: true
`)
	k.Object("v1/ConfigMap", "settings").Apply()
	k.Object("Link", "first").Set("deps.link.metadata.name", "absent").
		Set("deps.config.apiVersion", "v1").Set("deps.config.kind", "ConfigMap").
		Set("deps.config.name", "settings").Apply()
	drawn = draw(t, k, k.Cluster.Kubeconfig(), "links."+k.Group, "first")
	want := "Link first  waits for ConfigMap settings, Link absent\nConfigMap settings\nLink absent  does not exist\n"
	if drawn != want {
		t.Errorf("the field deps is drawn as\n%swant\n%s", drawn, want)
	}
}

// contains reports whether a line begins with a text.
func contains(lines []string, prefix string) bool {
	for _, l := range lines {
		if strings.HasPrefix(l, prefix) {
			return true
		}
	}
	return false
}

// TestGraphWithoutRights names the resources that the user may not read.
func TestGraphWithoutRights(t *testing.T) {
	k := start(t)
	k.Object("v1/ConfigMap", "settings").Apply()
	k.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: reader
rules:
- apiGroups:
  - ''
  resources:
  - configmaps
  verbs:
  - get
  - list
`)
	k.Apply(`
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: reader
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: reader
subjects:
- kind: User
  name: $NS
`)
	config, err := k.Cluster.User(k.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := cluster.WriteKubeconfig(config, file); err != nil {
		t.Fatal(err)
	}
	drawn := draw(t, k, file, "configmap", "settings")
	if !strings.HasPrefix(drawn, "ConfigMap settings\n") ||
		!strings.Contains(drawn, `"Forbidden": objects of `) || !strings.Contains(drawn, ", secrets, ") {
		t.Errorf("the graph of a user without rights does not say what is unknown:\n%s", drawn)
	}
}

// draw runs the command.
func draw(t *testing.T, k *kit.Kit, kubeconfig string, args ...string) string {
	t.Helper()
	args = append([]string{"graph", "--kubeconfig", kubeconfig, "-n", k.Namespace}, args...)
	out, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), args...).CombinedOutput()
	if err != nil {
		t.Fatalf("hookloop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
