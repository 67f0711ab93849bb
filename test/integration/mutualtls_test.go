package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// TestMutualTLS follows the documentation: the certificates of manifests/hooks/certificates.sh, the
// SDK's flags, and the controller's fields. Then the authority is replaced while syncs continue.
func TestMutualTLS(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("there is no openssl")
	}
	k := start(t)
	certificates(k)
	folder := t.TempDir()
	mount(k, "hello-tls", folder)
	file := func(name string) string { return filepath.Join(folder, name) }
	hook := mirrorWith(k, "mirror", "--listen", "127.0.0.1:0", "--tls-cert", file("tls.crt"), "--tls-key", file("tls.key"),
		"--client-ca", file("ca.crt"), "--client-name", "hookloop")
	k.CRD("Web", "Namespaced")
	// The hook does not run behind its Service here: the Secret's annotation allows its host.
	k.Patch("v1/Secret", "hookloop-client", "metadata: {annotations: {hookloop.dev/allowed-hosts: 127.0.0.1}}")
	k.Apply(strings.ReplaceAll(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME}
spec:
  generateSelector: true
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  childResources: [{apiVersion: v1, resource: configmaps, updateStrategy: {method: InPlace}}]
  hooks:
    sync:
      version: v2
      grpc:
        target: ADDRESS
        mode: Unary
        serverName: hello.$NS
        clientTLS: {secretRef: {name: hookloop-client, namespace: $NS}}
        caBundle: {secretRef: {name: hookloop-client, namespace: $NS}}
`, "ADDRESS", listening(k, hook)))
	t.Cleanup(func() { k.Delete(kit.CompositeController, k.Name) })
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "v1/ConfigMap", "page", "data.text", "one")

	certificates(k, "ROTATE_CA=1")
	mount(k, "hello-tls", folder)
	certificates(k)
	mount(k, "hello-tls", folder)
	k.Patch("Web", "web", "spec: {answer: {children: ["+page("page", "text: two")+"]}}")
	await(k, "v1/ConfigMap", "page", "data.text", "two")
}

// certificates runs the script for the hook hello of the kit's namespace.
func certificates(k *kit.Kit, environment ...string) {
	k.Helper()
	folder, err := k.Cluster.InstallKubectl()
	if err != nil {
		k.Fatal(err)
	}
	script := exec.CommandContext(k.Context(),
		filepath.Join(cluster.Root(), "manifests", "hooks", "certificates.sh"), k.Namespace, "hello")
	script.Env = append(os.Environ(), "KUBECONFIG="+k.Cluster.Kubeconfig(), "KUBECTL="+filepath.Join(folder, "kubectl"))
	script.Env = append(script.Env, environment...)
	if out, err := script.CombinedOutput(); err != nil {
		k.Fatalf("%v: %s", err, out)
	}
}

// mount writes the files of a Secret, as the kubelet does.
func mount(k *kit.Kit, secret, folder string) {
	k.Helper()
	s, err := kubernetes.NewForConfigOrDie(k.Cluster.Admin()).CoreV1().Secrets(k.Namespace).Get(k.Context(),
		secret, metav1.GetOptions{})
	if err != nil {
		k.Fatal(err)
	}
	for name, content := range s.Data {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o600); err != nil {
			k.Fatal(err)
		}
	}
}
