package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clockwork is a hook that desires one child, named like its parent, with other data in each
// answer, until it is stopped.
type clockwork struct {
	n       atomic.Int64
	stopped atomic.Bool
}

func (c *clockwork) answer(r kit.Request) any {
	if !c.stopped.Load() {
		c.n.Add(1)
	}
	return map[string]any{
		"status":   map[string]any{"fine": true},
		"children": []any{configMap(r.Parent.GetName(), strconv.FormatInt(c.n.Load(), 10))},
	}
}

// fewRewrites is a limit that two writers also reach on a busy machine, where 100 rewrites, the
// default, take more than a minute.
const fewRewrites = "--rewrite-limit=20"

// TestHookThatAnswersAtRandom opens its parent's circuit: writes stop, the parent reports why, and
// other parents are served. A try after the pause gets another random answer. A later one, after
// the hook has stabilized, closes the circuit.
func TestHookThatAnswersAtRandom(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	_, labels := ownEngine(k, fewRewrites, "--rewrite-pause=2s")
	work := &clockwork{}
	k.Run(
		kit.Composite{
			Parent:   "webs",
			Children: []string{"v1/configmaps InPlace"},
			Sync:     k.Hook(work.answer).URL,
			Labels:   labels,
		},
	)
	mark := k.Mark()
	k.Apply(parent("web"))
	k.AwaitFault("Web", "web", "CircuitOpen",
		`data.text of ConfigMap.v1 "`+k.Namespace+`/web" was rewritten over and over`)
	if n := kit.Count(k.Writes(mark), "update", "configmaps"); n < 15 || n > 40 {
		t.Errorf("%d updates before and shortly after the circuit has opened, want about 20", n)
	}
	tried := work.n.Load()
	k.Eventually("the circuit is tried", func() error {
		if n := work.n.Load(); n < tried+2 {
			return fmt.Errorf("the hook was asked %d times since", n-tried)
		}
		return nil
	})
	work.stopped.Store(true)
	k.AwaitSynced("Web", "web")
	await(k, "v1/ConfigMap", "web", "data.text", strconv.FormatInt(work.n.Load(), 10))
}

// TestUserEndsThePause edits a parent with an open circuit: it is synced immediately.
func TestUserEndsThePause(t *testing.T) {
	k := start(t)
	k.CRD("Web", "Namespaced")
	_, labels := ownEngine(k, "--rewrite-limit=10", "--rewrite-pause=1h")
	work := &clockwork{}
	k.Run(kit.Composite{
		Parent:   "webs",
		Children: []string{"v1/configmaps InPlace"},
		Labels:   labels,
		Sync:     k.Hook(work.answer).URL,
		Finalize: k.Hook(func(kit.Request) any { return map[string]any{"finalized": true} }).URL,
	})
	k.Apply(parent("web"))
	k.Apply(parent("other"))
	k.AwaitFault("Web", "web", "CircuitOpen", "data.text of ConfigMap.v1")
	k.AwaitFault("Web", "other", "CircuitOpen", "data.text of ConfigMap.v1")
	work.stopped.Store(true)
	k.Patch("Web", "web", "metadata: {annotations: {note: mended}}")
	k.AwaitSynced("Web", "web")
	if fault := kit.Condition(k.Get("Web", "other"), "Synced"); fault["reason"] != "CircuitOpen" {
		t.Errorf("the other parent, which nobody has edited, has the condition %v, want an open circuit", fault)
	}

	work.stopped.Store(false)
	k.Patch("Web", "web", "metadata: {annotations: {note: worse}}")
	k.AwaitFault("Web", "web", "CircuitOpen", "data.text of ConfigMap.v1")
	k.Delete("Web", "web") // an open circuit does not block finalizers
	k.Eventually("the parent is gone", func() error {
		if k.Find("Web", "web") != nil {
			return fmt.Errorf("it is there")
		}
		return nil
	})
}

// TestSecondWriter overwrites a child's field after each repair: the circuit opens, and names the
// writer.
func TestSecondWriter(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(kit.Request) any {
		return map[string]any{"children": []any{configMap("page", "ours")}}
	})
	_, labels := ownEngine(k, fewRewrites)
	run(t, k, kit.Composite{Sync: hook.URL, Labels: labels})
	k.Apply(parent("web"))
	await(k, "v1/ConfigMap", "page", "data.text", "ours")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			o, err := k.Lookup("v1/ConfigMap", "page")
			if err == nil {
				if text, _, _ := unstructured.NestedString(o.Object, "data", "text"); text == "ours" {
					_ = k.TryApply(configMapObject(k, "page", "theirs")) // one try of many
				}
			}
			<-tick.C
		}
	}()
	defer func() { stop(); <-ended }()
	k.AwaitFault("Web", "web", "CircuitOpen", `data.text is also written by ["`+kit.UserAgent+`"]`)
}

func configMapObject(k *kit.Kit, name, text string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{
		Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": map[string]any{"text": text}},
	}
	o.SetName(name)
	o.SetNamespace(k.Namespace)
	return o
}

// TestTwoControllersOnOneParent has two controllers that both write the status. The circuit of at
// least one of them opens, and both stop.
func TestTwoControllersOnOneParent(t *testing.T) {
	k := start(t)
	status := func(color string) func(kit.Request) any {
		return func(kit.Request) any { return map[string]any{"status": map[string]any{"color": color}} }
	}
	_, labels := ownEngine(k, fewRewrites)
	run(t, k, kit.Composite{Sync: k.Hook(status("red")).URL, Labels: labels})
	second := *k
	second.Name = k.Name + "-second"
	second.Declare(kit.Composite{
		Parent: "webs", Children: []string{"v1/configmaps InPlace"}, Sync: k.Hook(status("blue")).URL, Labels: labels,
	})
	k.Apply(parent("web"))
	awaitEvent(k, "web", "status.color of Web") // the other controller may write the condition again
	k.Settled(2 * time.Second)
}

// TestBuiltInKindAsParent has a hook that answers a status for a Deployment. The Deployment's own
// controller writes another one.
func TestBuiltInKindAsParent(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(kit.Request) any { return map[string]any{"status": map[string]any{"replicas": 7}} })
	_, labels := ownEngine(k, fewRewrites)
	k.Run(kit.Composite{
		Labels:   labels,
		Parent:   "apps/v1/deployments",
		Only:     map[string]any{"kit": k.Name},
		Children: []string{"v1/configmaps InPlace"},
		Sync:     hook.URL,
	})
	k.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: server
  namespace: $NS
  labels:
    kit: $NAME
spec:
  replicas: 0
  selector:
    matchLabels:
      app: web
  template:
    metadata:
      labels:
        app: web
    spec:
      containers:
      - name: server
        image: nginx
`)
	awaitEvent(k, "server", `is also written by ["kube-controller-manager"]`)
	k.Settled(2 * time.Second)
}

// awaitEvent waits for a SyncError Event of a parent with a text.
func awaitEvent(k *kit.Kit, name, text string) {
	k.Helper()
	k.Eventually("an Event has "+text, func() error {
		messages := k.Events(name, "SyncError")
		if !slices.ContainsFunc(messages, func(m string) bool { return strings.Contains(m, text) }) {
			return fmt.Errorf("its Events are %q", messages)
		}
		return nil
	})
}
