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

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}
