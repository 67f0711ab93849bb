package integration

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestParentsOfAnyResource has a Namespace as parent: any resource that the API server serves may
// be one.
func TestParentsOfAnyResource(t *testing.T) {
	k := start(t)
	child := map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": "welcome", "namespace": k.Namespace},
		"data":       map[string]any{"to": "you"},
	}
	hook := k.Hook(func(kit.Request) any {
		return map[string]any{"children": []any{child}, "status": map[string]any{"phase": "Active"}}
	})
	k.Run(kit.Composite{
		Parent:   "v1/namespaces",
		Only:     map[string]any{"test": k.Name},
		Children: []string{"v1/configmaps InPlace"},
		Sync:     hook.URL,
	})
	k.Patch("v1/Namespace", k.Namespace, "metadata: {labels: {test: $NAME}}")
	await(k, "v1/ConfigMap", "welcome", "data.to", "you")
	k.Delete("v1/ConfigMap", "welcome")
	await(k, "v1/ConfigMap", "welcome", "data.to", "you")
	// so that its deletion affects no controller
	k.Patch("v1/Namespace", k.Namespace, "metadata: {labels: {test: null}}")
}

// TestParentsWithoutStatus has a hook that answers a status for a resource without one. The
// children are created, the controller reports that the status is lost, and nothing is repeated.
func TestParentsWithoutStatus(t *testing.T) {
	k := start(t)
	child := map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "child"}}
	hook := k.Hook(func(kit.Request) any {
		return map[string]any{"children": []any{child}, "status": map[string]any{"phase": "up"}}
	})
	k.Run(kit.Composite{
		Parent:   "v1/configmaps",
		Only:     map[string]any{"test": k.Name},
		Children: []string{"v1/secrets InPlace"},
		Sync:     hook.URL,
		Resync:   1,
	})
	k.Object("v1/ConfigMap", "web").Label("test", k.Name).Apply()
	k.AwaitReady("StatusDropped")
	k.AwaitControllerEvent("SyncError")
	awaitAsked(k, hook, "web", 1)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
}

// TestIgnoreStatusChanges ignores changes of the parents' status, and nothing else.
func TestIgnoreStatusChanges(t *testing.T) {
	k := start(t)
	hook := k.Hook(kit.Mirror)
	run(t, k, kit.Composite{Sync: hook.URL, IgnoreStatus: true})
	k.Apply(parent("web", page("page", "text: one")))
	await(k, "Web", "web", "status.observedGeneration", "1")
	k.Patch("Web", "web", "status: {note: mine}", "status")
	await(k, "Web", "web", "status.note", "mine")
	for i, change := range []string{
		"metadata: {labels: {a: b}}", "metadata: {annotations: {a: b}}", "metadata: {finalizers: [example.com/mine]}",
		"spec: {more: yes}",
	} {
		asked := hook.Asked("web")
		k.Patch("Web", "web", change)
		k.Eventually(fmt.Sprintf("change %d is seen", i), func() error {
			if hook.Asked("web") == asked {
				return errors.New("the hook is not asked")
			}
			return nil
		})
		if i == 0 { // the first round was the event of the hook's own status
			await(k, "Web", "web", "status.note", "")
		}
	}
	k.Patch("Web", "web", "metadata: {finalizers: null}")
}

// TestIgnoreStatusChangesWithoutGenerations passes changes of data if the resource counts no
// generations.
func TestIgnoreStatusChangesWithoutGenerations(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		text, _, _ := unstructured.NestedString(r.Parent.Object, "data", "text")
		return map[string]any{"children": []any{
			map[string]any{
				"apiVersion": "v1",
				"kind":       "Secret",
				"metadata":   map[string]any{"name": "child"},
				"stringData": map[string]any{"text": text},
				"type":       "test/" + text,
			},
		}}
	})
	k.Run(kit.Composite{
		Parent:       "v1/configmaps",
		Only:         map[string]any{"test": k.Name},
		Children:     []string{"v1/secrets Recreate"},
		Sync:         hook.URL,
		IgnoreStatus: true,
	})
	k.Object("v1/ConfigMap", "web").Label("test", k.Name).Set("data.text", "one").Apply()
	await(k, "v1/Secret", "child", "type", "test/one")
	k.Patch("v1/ConfigMap", "web", "data: {text: two}")
	await(k, "v1/Secret", "child", "type", "test/two")
}

// TestOptOut removes a parent from its controller's selection. The finalize hook is asked; without
// one the children stay.
func TestOptOut(t *testing.T) {
	parallel(t)
	for name, finalize := range map[string]bool{"with a finalize hook": true, "without one": false} {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			c := kit.Composite{Only: map[string]any{"tier": "front"}}
			if finalize {
				c.Finalize = mirror(t)
			}
			run(t, k, c)
			k.Apply(parent("web", page("page", "text: one")))
			k.Patch("Web", "web", "{metadata: {labels: {tier: front}}, spec: {finally: {finalized: true}}}")
			await(k, "v1/ConfigMap", "page", "data.text", "one")
			mark := k.Mark()
			k.Patch("Web", "web", "metadata: {labels: {tier: back}}")
			if !finalize {
				k.Patch("Web", "web", "spec: {answer: {children: []}}")
				other := parent("other", page("other", "text: one"))
				k.Apply(other)
				k.Patch("Web", "other", "metadata: {labels: {tier: front}}")
				await(k, "v1/ConfigMap", "other", "data.text", "one")
				awaitSync(k, "other")
				if diff := cmp.Diff([]string{"create configmaps other"}, k.ChildWrites(mark)); diff != "" {
					t.Errorf("writes (-want +got):\n%s", diff)
				}
				return
			}
			await(k, "v1/ConfigMap", "page", "data.text", "")
			k.Eventually("the finalizer is gone", func() error {
				if f := k.Get("Web", "web").GetFinalizers(); len(f) > 0 {
					return fmt.Errorf("it has %v", f)
				}
				return nil
			})
		})
	}
}

// TestFinalizedFromSyncIsNoEnd has a sync hook that answers finalized while its parent exists. The
// finalizer stays, and the engine does not loop.
func TestFinalizedFromSyncIsNoEnd(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any { return map[string]any{"children": []any{good(r)}, "finalized": true} })
	run(t, k, kit.Composite{Sync: hook.URL, Finalize: hook.URL, Resync: 1})
	k.Apply(parent("web"))
	await(k, "Web", "web", "status.observedGeneration", "1")
	awaitAsked(k, hook, "web", 1)
	k.NoWrites(func() { awaitAsked(k, hook, "web", 2) })
	if got := k.Get("Web", "web").GetFinalizers(); len(got) != 1 {
		t.Errorf("finalizers %v, want one", got)
	}
}

// TestOrderedTeardown has a finalize hook that removes one child after the other.
func TestOrderedTeardown(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		children := []any{}
		left := ""
		for name := range r.Children["ConfigMap.v1"] {
			left = max(left, name)
		}
		for _, name := range []string{"a", "b", "c"} {
			if !r.Finalizing || name < left {
				children = append(children, configMap(name, "one"))
			}
		}
		return map[string]any{"children": children, "finalized": r.Finalizing && left == ""}
	})
	run(t, k, kit.Composite{Sync: hook.URL, Finalize: hook.URL})
	k.Apply(parent("web"))
	await(k, "v1/ConfigMap", "c", "metadata.name", "c")
	mark := k.Mark()
	k.Delete("Web", "web")
	k.Eventually("the parent is gone", func() error {
		if k.Find("Web", "web") != nil {
			return errors.New("it is there")
		}
		return nil
	})
	want := []string{"delete configmaps c", "delete configmaps b", "delete configmaps a"}
	if diff := cmp.Diff(want, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
}

// TestFinalizerGoesWithItsHook removes the finalizer of live parents when the controller no longer
// has a finalize hook.
func TestFinalizerGoesWithItsHook(t *testing.T) {
	k := start(t)
	run(t, k, kit.Composite{Finalize: mirror(t)})
	k.Apply(parent("web", page("page", "text: one")))
	k.Eventually("the finalizer is there", func() error {
		if len(k.Get("Web", "web").GetFinalizers()) == 0 {
			return errors.New("it is not")
		}
		return nil
	})
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: mirror(t)})
	k.Eventually("the finalizer is gone", func() error {
		if f := k.Get("Web", "web").GetFinalizers(); len(f) > 0 {
			return fmt.Errorf("it has %v", f)
		}
		return nil
	})
	if got := field(k, "v1/ConfigMap", "page", "data.text"); got != "one" {
		t.Errorf("the child has %q", got)
	}
}

// TestThrottledHook obeys a 429 with Retry-After silently. Without Retry-After, it is a fault like
// others, with backoff.
func TestThrottledHook(t *testing.T) {
	k := start(t)
	var answers, early atomic.Int64
	var refused atomic.Pointer[time.Time]
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last := refused.Load(); last != nil && time.Since(*last) < time.Second {
			early.Add(1)
		}
		if answers.Add(1) < 3 {
			now := time.Now()
			refused.Store(&now)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		refused.Store(nil)
		_, _ = io.WriteString(w, `{"status":{"phase":"up"}}`) // a closed connection is not the test's fault
	}))
	t.Cleanup(server.Close)
	run(t, k, kit.Composite{Sync: server.URL})
	k.Apply(parent("web"))
	await(k, "Web", "web", "status.phase", "up")
	if n := early.Load(); n > 0 {
		t.Errorf("the hook was asked %d times before the time of Retry-After", n)
	}
	if said := k.Events("web", "SyncError"); len(said) > 0 {
		t.Errorf("Events %q, want none", said)
	}
	hook := k.Hook(func(kit.Request) any { return kit.Answer{Code: http.StatusTooManyRequests} })
	k.Run(kit.Composite{Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: hook.URL})
	k.AwaitFault("Web", "web", "HookThrottled", "status 429")
	if n := hook.Asked("web"); n > 30 {
		t.Errorf("the hook was asked %d times without a delay", n)
	}
}
