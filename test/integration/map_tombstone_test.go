package integration

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestMapTombstoneFails has a tombstone hook that fails, hangs, or keeps an output that does not
// exist: no output is deleted, and the fault is in the parent's status until the hook has answered.
func TestMapTombstoneFails(t *testing.T) {
	parallel(t)
	bad := map[string]struct {
		answer func(kit.Request) any
		reason string
	}{
		"fails": {func(kit.Request) any { return kit.Answer{Code: 500, Body: "broken"} }, "HookFailed"},
		"hangs": {func(r kit.Request) any { <-r.Gone; return nil }, "HookTimeout"},
		"keeps what does not exist": {
			func(kit.Request) any { return map[string]any{"outputs": []any{configMap("other", "one")}} }, "InvalidHookAnswer",
		},
		"answers null":       {func(kit.Request) any { return map[string]any{"outputs": []any{nil}} }, "InvalidHookAnswer"},
		"answers no outputs": {func(kit.Request) any { return map[string]any{} }, "InvalidHookAnswer"},
	}
	for name, b := range bad {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			var mended atomic.Bool
			hook := k.Hook(func(r kit.Request) any {
				if r.Input == nil && strings.HasSuffix(r.MapKey, "/a") && !mended.Load() {
					return b.answer(r)
				}
				return mapPages(r)
			}).URL
			runPages(k, kit.Mapping{Map: hook, Tombstone: hook, Timeout: timeoutFor(b.reason)})
			input(k, "a", "map: me, pages: '2', text: one")
			input(k, "b", "map: me, pages: '2', text: one")
			awaitPages(k, "a-0 one", "a-1 one", "b-0 one", "b-1 one")
			k.Delete("v1/Secret", "a")
			k.Delete("v1/Secret", "b")
			awaitPages(k, "a-0 one", "a-1 one", "b-0 one")
			await(k, "Web", "web", "status.failed.total", "1")
			first, _, _ := unstructured.NestedSlice(k.Get("Web", "web").Object, "status", "failed", "first")
			if got := first[0].(map[string]any)["reason"]; got != b.reason {
				t.Errorf("the reason is %v, want %s", got, b.reason)
			}
			awaitPages(k, "a-0 one", "a-1 one", "b-0 one")
			mended.Store(true)
			k.Patch("Web", "web", "spec: {more: things}")
			awaitPages(k, "a-0 one", "b-0 one")
			k.Eventually("the fault is gone", func() error {
				web := k.Get("Web", "web")
				if _, found, _ := unstructured.NestedMap(web.Object, "status", "failed"); found ||
					kit.Condition(web, "Synced")["status"] != "True" {
					return errors.New("the status has it")
				}
				return nil
			})
		})
	}
}
