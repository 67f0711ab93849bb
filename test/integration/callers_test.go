package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/test/kit"
)

// TestHooksChooseTheirCallers has a hook on each SDK that requires the engine's certificate, of an
// authority and with a name, and a token. The engine's first token is wrong: the parent reports the
// hook's reason, and the right token fixes it.
func TestHooksChooseTheirCallers(t *testing.T) {
	parallel(t)
	for name, begin := range map[string]func(k *kit.Kit, flags ...string) *proc.Process{
		"go":         func(k *kit.Kit, flags ...string) *proc.Process { return mirrorWith(k, "mirror", flags...) },
		"python":     pythonHook,
		"typescript": typescriptHook,
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			hooks := tlstest.NewAuthority(t)
			engines := tlstest.NewAuthority(t)
			folder := t.TempDir()
			certificate, key := hooks.Issue("hook")
			files := map[string][]byte{
				"tls.crt": certificate,
				"tls.key": key,
				"ca.crt":  engines.PEM,
				"tokens":  []byte("right-secret-token\n"),
			}
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			file := func(name string) string { return filepath.Join(folder, name) }
			hook := begin(k, "--listen", "127.0.0.1:0", "--tls-cert", file("tls.crt"), "--tls-key", file("tls.key"),
				"--client-ca", file("ca.crt"), "--client-name", "engine", "--token-file", file("tokens"))
			address := listening(k, hook)

			certificate, key = engines.Issue("engine")
			k.CRD("Web", "Namespaced")
			k.Apply(
				fmt.Sprintf(
					"{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, namespace: $NS}, data: {ca.crt: %q}}",
					hooks.PEM,
				),
			)
			secret := "{apiVersion: v1, kind: Secret, metadata: {name: %s, namespace: $NS, " +
				"annotations: {hookloop.dev/allowed-hosts: 127.0.0.1}}, stringData: {%s}}"
			k.Apply(fmt.Sprintf(secret, "engine", fmt.Sprintf("tls.crt: %q, tls.key: %q", certificate, key)))
			k.Apply(fmt.Sprintf(secret, "token", "token: wrong-secret-token"))
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
        caBundle: {configMapRef: {name: ca, namespace: $NS}}
        clientTLS: {secretRef: {name: engine, namespace: $NS}}
        authorization: {secretRef: {name: token, namespace: $NS}}
`, "ADDRESS", address))
			t.Cleanup(func() { k.Delete(kit.CompositeController, k.Name) })
			k.Apply(parent("web", page("page", "text: one")))
			k.AwaitFault("Web", "web", "HookFailed", "the call's token is not one that this hook knows")
			k.Patch("v1/Secret", "token", "stringData: {token: right-secret-token}")
			await(k, "v1/ConfigMap", "page", "data.text", "one")
			k.AwaitSynced("Web", "web")
			if output := hook.Output(); strings.Contains(output, "secret-token") ||
				strings.Contains(output, "can call the hook") {
				t.Errorf("the hook prints %s", output)
			}
		})
	}
}
