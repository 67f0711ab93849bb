package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/test/kit"
)

// TestHookCredentials has a hook behind TLS that requires a token. Both come from the cluster, and
// the token rotates. The parent and the controller report missing objects, and no restart is
// necessary.
func TestHookCredentials(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	authority := tlstest.NewAuthority(t)
	var token atomic.Value
	token.Store("first-secret-token")
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != fmt.Sprint("Bearer ", token.Load()) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"status":{"phase":"up"}}`) // a closed connection is not the test's fault
	}))
	server.TLS = authority.Server(nil)
	server.StartTLS()
	t.Cleanup(server.Close)
	k.Apply(strings.NewReplacer("URL", server.URL, "HOST", strings.TrimPrefix(server.URL, "https://")).Replace(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: CompositeController
metadata: {name: $NAME}
spec:
  generateSelector: true
  resyncPeriodSeconds: 1
  parentResource: {apiVersion: $GROUP/v1, resource: webs}
  endpointConfigs:
  - host: HOST
    caBundle: {configMapRef: {name: ca, namespace: $NS}}
    authorization: {secretRef: {name: token, namespace: $NS}}
  hooks: {sync: {webhook: {url: URL, etag: {enabled: true}}}}
`))
	t.Cleanup(func() { k.Delete(kit.CompositeController, k.Name) })
	k.Apply(parent("web"))
	k.AwaitFault("Web", "web", "HookCredentials",
		"endpointConfigs[0].caBundle.configMapRef: there is no ConfigMap "+k.Namespace+"/ca")
	k.AwaitReady(v1alpha1.ReasonHookUnreachable)
	k.Apply(
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: ca, namespace: $NS}, data: {ca.crt: " + fmt.Sprintf(
			"%q",
			authority.PEM,
		) + "}}",
	)
	k.AwaitFault("Web", "web", "HookCredentials",
		"endpointConfigs[0].authorization.secretRef: there is no Secret "+k.Namespace+"/token")
	k.Object("v1/Secret", "token").Set("stringData.token", "first-secret-token").Apply()
	k.AwaitFault("Web", "web", "HookCredentials", "expected a Service in namespace "+k.Namespace)
	k.Patch("v1/Secret", "token", "metadata: {annotations: {hookloop.dev/allowed-hosts: 127.0.0.1}}")
	await(k, "Web", "web", "status.phase", "up")
	k.AwaitReady(v1alpha1.ReasonRunning)

	k.Object("v1/Secret", "token").Set("stringData.token", "second-secret-token").Apply()
	token.Store("second-secret-token")
	k.Patch("Web", "web", "metadata: {labels: {round: two}}")
	k.Eventually("no token is in objects or Events", func() error {
		for _, o := range []string{fmt.Sprint(k.Get("Web", "web").Object), fmt.Sprint(k.Events("web", "SyncError"))} {
			if strings.Contains(o, "secret-token") {
				t.Fatal("a token leaked: " + o)
			}
		}
		if kit.Condition(k.Get("Web", "web"), "Synced")["status"] != "True" {
			return errors.New("the sync fails")
		}
		return nil
	})
}
