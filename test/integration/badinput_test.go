package integration

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// well returns the child that a parent should have.
func well(r kit.Request) any { return map[string]any{"children": []any{good(r)}} }

// good is this child, with the parent's name and its spec.text.
func good(r kit.Request) map[string]any {
	text, _, _ := unstructured.NestedString(r.Parent.Object, "spec", "text")
	return configMap(r.Parent.GetName(), text)
}

// also returns the good child and one more item.
func also(item any) func(kit.Request) any {
	return func(r kit.Request) any { return map[string]any{"children": []any{good(r), item}} }
}

// raw returns a text as the response.
func raw(code int, text string) func(kit.Request) any {
	return func(kit.Request) any { return kit.Answer{Code: code, Body: text} }
}

func TestBadAnswers(t *testing.T) {
	parallel(t)
	cases := map[string]struct {
		answer func(kit.Request) any
		// reason and part belong to the parent's condition and Event.
		reason, part string
	}{
		"hangs up": {
			func(kit.Request) any { return kit.Answer{Hangup: true} }, "HookUnreachable", "/hook: EOF",
		},
		"is slow": {
			func(r kit.Request) any { <-r.Gone; return nil }, "HookTimeout", "no answer within 500ms",
		},
		"answers 500":      {raw(500, "it is broken"), "HookFailed", `status 500: "it is broken"`},
		"answers nothing":  {raw(200, ""), "InvalidHookAnswer", "the answer is empty"},
		"answers garbage":  {raw(200, "<html>"), "InvalidHookAnswer", `begins with "<html>"`},
		"breaks off":       {raw(200, `{"children": [`), "InvalidHookAnswer", "the answer is not valid"},
		"answers a string": {raw(200, `{"children": "none"}`), "InvalidHookAnswer", "children"},
		"answers 20 MB": {
			raw(
				200,
				`{"children": [], "status": "`+strings.Repeat("x", 20<<20)+`"}`,
			),
			"InvalidHookAnswer",
			"the answer is larger than",
		},
		"answers null for a child": {also(nil), "InvalidHookAnswer", "children[1]: got null, expected"},
		"answers an undeclared kind": {
			also(map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "extra"}}),
			"InvalidHookAnswer", `children[1] Secret.v1 "extra": kind is not declared`,
		},
		"answers a cluster-scoped child": {
			also(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "extra"}}),
			"InvalidHookAnswer", `children[1] Namespace.v1 "extra": kind is not declared`,
		},
		"answers a child twice": {
			func(r kit.Request) any { return map[string]any{"children": []any{good(r), good(r)}} },
			"InvalidHookAnswer", "is desired twice, first as children[0]",
		},
		"answers a child of another namespace": {
			also(
				map[string]any{
					"apiVersion": "v1",
					"kind":       "ConfigMap",
					"metadata":   map[string]any{"name": "extra", "namespace": "default"},
				},
			),
			"InvalidHookAnswer",
			`children[1] ConfigMap.v1 "default/extra": metadata.namespace is "default"; expected`,
		},
		"answers a child without a name": {
			also(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"generateName": "extra-"}}),
			"InvalidHookAnswer", "children[1] ConfigMap.v1",
		},
		"answers a negative time": {raw(200, `{"resyncAfterSeconds": -1}`), "InvalidHookAnswer", "resyncAfterSeconds is -1"},
	}
	for name, c := range cases {
		t.Run("the hook "+name, func(t *testing.T) {
			k := start(t)
			hook := k.Hook(well)
			run(t, k, kit.Composite{Sync: hook.URL, Timeout: timeoutFor(c.reason)})
			k.Object("Web", "bad").Set("spec.text", "one").Apply()
			await(k, "v1/ConfigMap", "bad", "data.text", "one")
			mark := k.Settled(settled) // the audit log has a write a moment after the object has it

			hook.Answer(func(r kit.Request) any {
				if r.Parent.GetName() == "bad" {
					return c.answer(r)
				}
				return well(r)
			})
			k.Patch("Web", "bad", "spec: {text: two}")
			k.AwaitFault("Web", "bad", c.reason, c.part)
			k.AwaitFault("Web", "bad", c.reason, "hook sync "+hook.URL+": ")
			k.Object("Web", "other").Set("spec.text", "one").Apply()
			await(k, "v1/ConfigMap", "other", "data.text", "one")
			awaitLines(k, "writes while the hook is bad", []string{"create configmaps other"},
				func() []string { return k.ChildWrites(mark) })

			hook.Answer(well)
			await(k, "v1/ConfigMap", "bad", "data.text", "two")
			k.AwaitSynced("Web", "bad")
			if diff := cmp.Diff([]string{"create configmaps other", "update configmaps bad"}, k.ChildWrites(mark)); diff != "" {
				t.Errorf("all writes (-want +got):\n%s", diff)
			}
		})
	}
}

// TestHookIsDown stops a hook and starts it again. Parents and controller report the outage, and
// recover automatically.
func TestHookIsDown(t *testing.T) {
	k := start(t)
	hook := k.Hook(well)
	run(t, k, kit.Composite{Sync: hook.URL})
	k.Object("Web", "web").Set("spec.text", "one").Apply()
	await(k, "v1/ConfigMap", "web", "data.text", "one")
	mark := k.Mark()
	hook.Stop()
	k.Patch("Web", "web", "spec: {text: two}")
	k.AwaitFault("Web", "web", "HookUnreachable", hook.URL)
	k.AwaitReady("HookUnreachable")
	if diff := cmp.Diff([]string{}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("writes while the hook is down (-want +got):\n%s", diff)
	}
	hook.Start()
	await(k, "v1/ConfigMap", "web", "data.text", "two")
	k.AwaitSynced("Web", "web")
	k.AwaitReady("Running")
}

// timeoutFor returns the hook's time limit in a test of a fault. It is short only if the fault is
// the end of that time.
func timeoutFor(reason string) string {
	if reason == "HookTimeout" {
		return "500ms"
	}
	return ""
}
