package hookprocess_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/hookprocess"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const declaredHooks = `
spec:
  hooks:
    sync: {version: v2, webhook: {url: "https://127.0.0.1:8443/sync?v=1", caBundle: {inline: x}, timeout: 5s}}
    finalize: {webhook: {service: {name: hooks, namespace: shop}, path: finalize}}
    customize: {grpc: {service: {name: hooks, namespace: shop, port: 9443}, mode: Stream, serverName: hooks}}
    preUpdateChild: {grpc: {target: "dns:///localhost:9443", insecure: true}}
    postUpdateChild: {grpc: {worker: shop}}
`

const redirectedHooks = `
spec:
  hooks:
    sync: {version: v2, webhook: {url: "http://127.0.0.1:1234/sync?v=1", timeout: 5s}}
    finalize: {webhook: {url: "http://127.0.0.1:1234/finalize"}}
    customize: {grpc: {target: "dns:///127.0.0.1:1234", insecure: true, mode: Stream}}
    preUpdateChild: {grpc: {target: "dns:///127.0.0.1:1234", insecure: true}}
    postUpdateChild: {grpc: {target: "dns:///127.0.0.1:1234", insecure: true}}
`

func TestRedirect(t *testing.T) {
	controller := parse(t, declaredHooks)
	want := parse(t, redirectedHooks)
	addresses := map[string]bool{}
	for _, a := range hookprocess.Declared(controller) {
		addresses[a] = true
	}
	if diff := cmp.Diff(map[string]bool{"127.0.0.1:8443": true, "localhost:9443": true}, addresses); diff != "" {
		t.Errorf("declared loopback addresses (-want +got):\n%s", diff)
	}
	if err := hookprocess.Redirect(controller, "127.0.0.1:1234"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Object, controller.Object); diff != "" {
		t.Errorf("redirected controller (-want +got):\n%s", diff)
	}
}

// TestRedirectOfATransport calls the fallback of a hook whose transport this program does not have,
// and names the transport of one without a fallback.
func TestRedirectOfATransport(t *testing.T) {
	controller := parse(t, `{spec: {hooks: {sync: {transport: {name: nats}, webhook: {url: "http://a/sync"}}}}}`)
	if err := hookprocess.Redirect(controller, "127.0.0.1:1234"); err != nil {
		t.Fatal(err)
	}
	want := parse(t, `{spec: {hooks: {sync: {webhook: {url: "http://127.0.0.1:1234/sync"}}}}}`)
	if diff := cmp.Diff(want.Object, controller.Object); diff != "" {
		t.Errorf("redirected controller (-want +got):\n%s", diff)
	}
	err := hookprocess.Redirect(parse(t, `{spec: {hooks: {sync: {transport: {name: nats}}}}}`), "127.0.0.1:1234")
	text := `spec.hooks.sync: transport.name: "nats" is a transport that another program adds; ` +
		`expected webhook or grpc, which this program can call at 127.0.0.1:1234`
	if err == nil || err.Error() != text {
		t.Errorf("got  %v\nwant %s", err, text)
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
