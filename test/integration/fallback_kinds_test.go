package integration

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"github.com/hookloop/hookloop/test/kit"
)

// TestMapHooksWithFallback runs a parent with its inputs from creation to deletion while the
// webhook answers all operations of a MapController in place of its gRPC hook, and while it is not
// needed.
func TestMapHooksWithFallback(t *testing.T) {
	parallel(t)
	for name, c := range map[string]struct{ grpc, reason string }{
		"the webhook answers":   {"127.0.0.1:1", v1alpha1.ReasonWebhook},
		"the gRPC hook answers": {serveMap(t, copyHook), v1alpha1.ReasonGRPC},
	} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			webhook := k.Hook(copiesByJSON)
			mapLife(k, kit.Mapping{Version: "v2"}, "grpc:"+c.grpc+" or "+webhook.URL)
			awaitFallbackOf(k, kit.MapController, c.reason)
			if asked := webhook.Asked("web") > 0; asked != (c.reason == v1alpha1.ReasonWebhook) {
				t.Errorf("the webhook was asked: %t", asked)
			}
		})
	}
}

// TestDecoratorWithFallback stops the gRPC hook of a DecoratorController: the webhook answers
// customize and sync, and the decorated object follows.
func TestDecoratorWithFallback(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	address, stop := serveDecorator(t)
	var asked atomic.Int64
	webhook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer := `{"labels":{"by":"webhook"}}`
		if r.URL.Path == "/customize" {
			answer = `{"relatedResources":[]}`
		}
		fmt.Fprint(w, answer) //nolint:errcheck // the engine reports a lost answer
	}))
	t.Cleanup(webhook.Close)
	both := func(path string) string {
		return fmt.Sprintf(`{version: v2, grpc: {target: %q, insecure: true}, webhook: {url: %q}}`, address, webhook.URL+path)
	}
	k.Apply(`
apiVersion: metacontroller.k8s.io/v1alpha1
kind: DecoratorController
metadata: {name: ` + k.Name + `}
spec:
  resources: [{apiVersion: $GROUP/v1, resource: webs}]
  hooks: {sync: ` + both("/sync") + `, customize: ` + both("/customize") + `}
`)
	k.Cleanup(func() { k.Delete(decoratorController, k.Name) })
	k.Apply(parent("web"))
	await(k, "Web", "web", "metadata.labels.by", "grpc")
	awaitFallbackOf(k, decoratorController, v1alpha1.ReasonGRPC)
	if n := asked.Load(); n != 0 {
		t.Errorf("the webhook was asked %d times, want none", n)
	}
	stop()
	k.Patch("Web", "web", "spec: {edited: true}")
	await(k, "Web", "web", "metadata.labels.by", "webhook")
	awaitFallbackOf(k, decoratorController, v1alpha1.ReasonWebhook)
}

// serveDecorator serves a decorator on the SDK until stop is called or the test ends.
func serveDecorator(t *testing.T) (address string, stop func()) {
	t.Helper()
	return serveSDK(t, hook.Decorator{
		Sync: func(context.Context, *hook.SyncRequest) (*hook.DecorateResponse, error) {
			by := "grpc"
			return &hook.DecorateResponse{Labels: map[string]*string{"by": &by}}, nil
		},
		Customize: func(context.Context, *hook.CustomizeRequest) (*hook.CustomizeResponse, error) {
			return &hook.CustomizeResponse{}, nil
		},
	})
}
