package integration

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/kit"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The marks on the outputs of a map hook, as docs/reference names them for users.
const (
	mapKeyMark        = "metacontroller.k8s.io/map-key"
	mapControllerMark = "metacontroller.k8s.io/map-controller"
)

// mapKeyHash returns the value of the label of a map key: the first 16 bytes of its SHA-256 sum.
func mapKeyHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}

// mapPages answers as many ConfigMaps for an input as its label pages has; their text is its label
// text. The tombstone hook keeps the first one, and the finalize hook none.
func mapPages(r kit.Request) any {
	outputs := []any{}
	switch {
	case r.Finalizing:
		return map[string]any{"outputs": outputs, "finalized": true}
	case r.Input == nil:
		for name, o := range r.Outputs["ConfigMap.v1"] {
			if strings.HasSuffix(name, "-0") {
				outputs = append(outputs, o)
			}
		}
	default:
		input := &unstructured.Unstructured{Object: r.Input}
		var n int
		_, _ = fmt.Sscan(input.GetLabels()["pages"], &n) // none without the label
		for i := range n {
			outputs = append(outputs, configMap(fmt.Sprintf("%s-%d", input.GetName(), i), input.GetLabels()["text"]))
		}
	}
	return map[string]any{"outputs": outputs}
}

// runPages runs a map controller from Secrets to ConfigMaps with a parent that selects the label
// map=me.
func runPages(k *kit.Kit, m kit.Mapping) {
	k.Helper()
	k.CRD("Web", "Namespaced")
	m.Parent = "webs"
	m.Inputs = []string{"v1/secrets"}
	m.Outputs = []string{"v1/configmaps InPlace"}
	k.RunMap(m)
	k.Object("Web", "web").Set("spec.selector.matchLabels.map", "me").Apply()
}

// input applies an input with labels.
func input(k *kit.Kit, name, labels string) {
	k.Helper()
	k.Apply("{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: $NS, labels: {" + labels + "}}}")
}

// outputsOf returns the names and texts of the ConfigMaps that the parent controls, in order.
func outputsOf(k *kit.Kit) []string {
	k.Helper()
	all := []string{}
	for _, o := range k.List("v1/ConfigMap") {
		if refs := o.GetOwnerReferences(); len(refs) > 0 && refs[0].Kind == "Web" && o.GetDeletionTimestamp() == nil {
			text, _, _ := unstructured.NestedString(o.Object, "data", "text")
			all = append(all, o.GetName()+" "+text)
		}
	}
	slices.Sort(all)
	return all
}

func awaitPages(k *kit.Kit, want ...string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("the outputs are %q", want), func() error {
		if diff := cmp.Diff(append([]string{}, want...), outputsOf(k)); diff != "" {
			return fmt.Errorf("(-want +got):\n%s", diff)
		}
		return nil
	})
}

// checkMarks compares the marks of an output with those of its input.
func checkMarks(k *kit.Kit, name, key string) {
	k.Helper()
	o := k.Get("v1/ConfigMap", name)
	got := []string{o.GetLabels()[mapKeyMark], o.GetAnnotations()[mapKeyMark], o.GetAnnotations()[mapControllerMark]}
	if diff := cmp.Diff([]string{mapKeyHash(key), key, k.Name}, got); diff != "" {
		k.Errorf("the marks of %s (-want +got):\n%s", name, diff)
	}
}

// TestMapParts follows inputs from creation to deletion, and the parent to its end.
func TestMapParts(t *testing.T) {
	k := start(t)
	hook := k.Hook(mapPages).URL
	runPages(k, kit.Mapping{Map: hook, Tombstone: hook, Finalize: hook})
	input(k, "a", "map: me, pages: '2', text: one")
	input(k, "b", "map: me, pages: '1', text: one")
	input(k, "c", "map: you, pages: '1', text: one")
	awaitPages(k, "a-0 one", "a-1 one", "b-0 one")
	checkMarks(k, "a-0", k.Expand("Secret/$NS/a"))

	input(k, "a", "map: me, pages: '3', text: two") // an update
	awaitPages(k, "a-0 two", "a-1 two", "a-2 two", "b-0 one")
	input(k, "c", "map: me, pages: '1', text: one") // it is selected now
	awaitPages(k, "a-0 two", "a-1 two", "a-2 two", "b-0 one", "c-0 one")

	kept := k.Get("v1/ConfigMap", "a-0")
	k.Delete("v1/Secret", "a")                         // a tombstone
	input(k, "b", "map: you, pages: '1', text: three") // another one: it is no longer selected
	awaitPages(k, "a-0 two", "b-0 one", "c-0 one")
	input(k, "a", "map: me, pages: '2', text: two") // restored from a backup
	awaitPages(k, "a-0 two", "a-1 two", "b-0 one", "c-0 one")
	if now := k.Get("v1/ConfigMap", "a-0"); now.GetUID() != kept.GetUID() ||
		now.GetResourceVersion() != kept.GetResourceVersion() {
		t.Errorf("the kept output was written: %v, before %v", now.Object, kept.Object)
	}
	k.Delete("Web", "web")
	awaitPages(k)
	k.Eventually("the parent is gone", func() error {
		if o := k.Find("Web", "web"); o != nil {
			return fmt.Errorf("it has the finalizers %q", o.GetFinalizers())
		}
		return nil
	})
}

// TestMapMarks edits and removes marks of outputs. They are restored, and no output is created or
// deleted. With server-side apply there is no last-applied state to restore them from.
func TestMapMarks(t *testing.T) {
	parallel(t)
	for _, strategy := range []string{"dynamic-apply", "server-side-apply"} {
		t.Run(strategy, func(t *testing.T) {
			k := start(t)
			_, labels := ownEngine(k, "--apply-strategy="+strategy)
			hook := k.Hook(mapPages).URL
			runPages(k, kit.Mapping{Map: hook, Tombstone: hook, Labels: labels})
			input(k, "a", "map: me, pages: '2', text: one")
			awaitPages(k, "a-0 one", "a-1 one")
			before := k.Get("v1/ConfigMap", "a-0").GetUID()
			mark := k.Mark()
			for _, edit := range []string{
				"labels: {metacontroller.k8s.io/map-key: mine}",
				"labels: {metacontroller.k8s.io/map-key: null}",
				"annotations: {metacontroller.k8s.io/map-key: Secret/default/other}",
				"annotations: {metacontroller.k8s.io/map-key: null}",
				"annotations: {metacontroller.k8s.io/map-controller: null}",
				"labels: {metacontroller.k8s.io/map-key: null}, annotations: {metacontroller.k8s.io/map-key: null}",
			} {
				edited := k.Get("v1/ConfigMap", "a-0").GetResourceVersion()
				k.Patch("v1/ConfigMap", "a-0", "metadata: {"+edit+"}")
				k.Eventually("the marks are restored after "+edit, func() error {
					o := k.Get("v1/ConfigMap", "a-0")
					key := k.Expand("Secret/$NS/a")
					if o.GetResourceVersion() == edited || o.GetLabels()[mapKeyMark] != mapKeyHash(key) ||
						o.GetAnnotations()[mapKeyMark] != key || o.GetAnnotations()[mapControllerMark] != k.Name {
						return fmt.Errorf("they are %v, %v", o.GetLabels(), o.GetAnnotations())
					}
					return nil
				})
			}
			if now := k.Get("v1/ConfigMap", "a-0").GetUID(); now != before {
				t.Errorf("the output is another one: %s, before %s", now, before)
			}
			for _, write := range k.ChildWrites(mark) {
				if strings.HasPrefix(write, "create") || strings.HasPrefix(write, "delete") {
					t.Errorf("a write of the engine: %s", write)
				}
			}
			awaitPages(k, "a-0 one", "a-1 one")
		})
	}
}

// TestMapNamespaces has a cluster-scoped parent that selects namespaces. A namespace gets and loses
// the label that selects it, with an input in it that does not change.
func TestMapNamespaces(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		answer := mapPages(r).(map[string]any)
		for _, output := range answer["outputs"].([]any) {
			if metadata := output.(map[string]any)["metadata"].(map[string]any); metadata["namespace"] == nil {
				metadata["namespace"] = k.Namespace
			}
		}
		return answer
	}).URL
	k.CRD("Web", "Cluster")
	k.RunMap(kit.Mapping{
		Parent: "webs", Inputs: []string{"v1/secrets"}, Outputs: []string{"v1/configmaps InPlace"},
		Map: hook, Tombstone: hook,
	})
	k.Object("Web", k.Name).Set("spec.selector.matchLabels.map", "me").
		Set("spec.namespaceSelector.matchLabels.test", k.Name).Apply()
	input(k, "a", "map: me, pages: '2', text: one")
	k.Patch("v1/Namespace", k.Namespace, "metadata: {labels: {test: "+k.Name+"}}")
	awaitPages(k, "a-0 one", "a-1 one")
	k.Patch("v1/Namespace", k.Namespace, "metadata: {labels: {test: null}}")
	awaitPages(k, "a-0 one") // the tombstone hook keeps it
	k.Patch("v1/Namespace", k.Namespace, "metadata: {labels: {test: "+k.Name+"}}")
	awaitPages(k, "a-0 one", "a-1 one")
}

// TestMapConflict: two inputs want one output. The first keeps it, the error names the output and
// both inputs, and nothing is written any more. When the first one goes, the other one gets it.
func TestMapConflict(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(r kit.Request) any {
		input := &unstructured.Unstructured{Object: r.Input}
		return map[string]any{"outputs": []any{
			configMap("shared", input.GetName()), configMap("own-"+input.GetName(), input.GetName()),
		}}
	}).URL
	runPages(k, kit.Mapping{Map: hook})
	input(k, "a", "map: me")
	awaitPages(k, "own-a a", "shared a")
	before := k.Get("v1/ConfigMap", "shared")
	input(k, "b", "map: me")
	awaitEvent(k, "web", k.Expand(`ConfigMap.v1 "$NS/shared": the object exists already and is an output `+
		`of the input Secret/$NS/a; expected another name for the output of the input Secret/$NS/b`))
	awaitPages(k, "own-a a", "own-b b", "shared a")
	input(k, "c", "map: me") // the others are mapped
	awaitPages(k, "own-a a", "own-b b", "own-c c", "shared a")
	if now := k.Get("v1/ConfigMap", "shared"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("the output was written: %v, before %v", now.Object, before.Object)
	}
	k.Delete("v1/Secret", "a")
	k.Delete("v1/Secret", "c")
	awaitPages(k, "own-b b", "shared b")
}

// TestMapConflictRace creates two inputs that want one output at the same time. One of them gets it
// and keeps it: it is created once.
func TestMapConflictRace(t *testing.T) {
	k := start(t)
	hook := k.Hook(func(kit.Request) any {
		return map[string]any{"outputs": []any{configMap("shared", "one")}}
	}).URL
	runPages(k, kit.Mapping{Map: hook})
	mark := k.Mark()
	var both sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		both.Go(func() { input(k, name, "map: me") })
	}
	both.Wait()
	awaitEvent(k, "web", k.Expand(`ConfigMap.v1 "$NS/shared": the object exists already and is an output of the input`))
	owner := k.Get("v1/ConfigMap", "shared").GetAnnotations()[mapKeyMark]
	loser := map[string]string{k.Expand("Secret/$NS/a"): "Secret/$NS/b", k.Expand("Secret/$NS/b"): "Secret/$NS/a"}[owner]
	awaitEvent(k, "web", "input "+owner+"; expected another name for the output of the input "+k.Expand(loser))
	for _, write := range k.ChildWrites(mark)[1:] { // the first one is the creation
		if write != "create configmaps shared 409" {
			t.Errorf("a write after the creation: %s", write)
		}
	}
}

// TestMapFlip changes the label of an input quickly. In the end its outputs are those of its last
// state, and the output that the tombstone hook keeps is the first one.
func TestMapFlip(t *testing.T) {
	k := start(t)
	hook := k.Hook(mapPages).URL
	runPages(k, kit.Mapping{Map: hook, Tombstone: hook})
	input(k, "a", "map: me, pages: '2', text: one")
	awaitPages(k, "a-0 one", "a-1 one")
	kept := k.Get("v1/ConfigMap", "a-0").GetUID()
	for i := range 40 {
		input(k, "a", "map: "+[]string{"you", "me"}[i%2]+", pages: '2', text: one")
	}
	awaitPages(k, "a-0 one", "a-1 one")
	input(k, "a", "map: you, pages: '2', text: one")
	awaitPages(k, "a-0 one")
	if now := k.Get("v1/ConfigMap", "a-0").GetUID(); now != kept {
		t.Errorf("the kept output is another one: %s, before %s", now, kept)
	}
}

// TestMapBadAnswers refuses answers about one input, named in an Event. The other input is mapped.
func TestMapBadAnswers(t *testing.T) {
	parallel(t)
	bad := map[string]string{
		"kind":     `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"x"}}`,
		"nameless": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{}}`,
		"far":      `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","namespace":"default"}}`,
		"null":     `null`,
		"copied": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x",` +
			`"labels":{"metacontroller.k8s.io/map-key":"mine"}}}`,
		"foreign": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"theirs"}}`,
		"duplicate": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}},` +
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"}}`,
	}
	want := map[string]string{
		"kind": "kind is not declared", "nameless": "metadata.name is missing", "far": `metadata.namespace is "default"`,
		"null": "got null", "copied": "metadata.labels", "foreign": "the object exists already and has no controller",
		"duplicate": "is desired twice",
	}
	for name, outputs := range bad {
		t.Run(name, func(t *testing.T) {
			k := start(t)
			k.Object("v1/ConfigMap", "theirs").Apply()
			hook := k.Hook(func(r kit.Request) any {
				if strings.HasSuffix(r.MapKey, "/bad") {
					return map[string]any{"outputs": json.RawMessage("[" + outputs + "]")}
				}
				return mapPages(r)
			}).URL
			runPages(k, kit.Mapping{Map: hook})
			input(k, "bad", "map: me")
			input(k, "good", "map: me, pages: '1', text: one")
			awaitPages(k, "good-0 one")
			awaitEvent(k, "web", k.Expand("Secret/$NS/bad"))
			awaitEvent(k, "web", want[name])
		})
	}
}

// TestMapEngineIsKilled kills an engine after some of an input's outputs are created, and again
// after some are deleted because the input is gone. The next engine does the rest: each output is
// created once, nothing is deleted that the tombstone hook keeps, and the status has all outputs.
func TestMapEngineIsKilled(t *testing.T) {
	k := start(t)
	// The limit of five requests a second spreads the writes, so that the kills come between two of
	// them.
	engine, labels := ownEngine(k, "--client-go-qps=5", "--client-go-burst=1")
	hook := k.Hook(mapPages).URL
	runPages(k, kit.Mapping{Map: hook, Tombstone: hook, Labels: labels})
	var all, creates, deletes []string
	for i := range 10 {
		all = append(all, fmt.Sprintf("a-%d one", i))
		creates = append(creates, fmt.Sprintf("create configmaps a-%d", i))
		if i > 0 {
			deletes = append(deletes, fmt.Sprintf("delete configmaps a-%d", i))
		}
	}
	killed := func(mark cluster.Mark, writes int) {
		t.Helper()
		k.Eventually("some outputs are written", func() error {
			if n := len(k.ChildWrites(mark)); n < writes {
				return fmt.Errorf("%d are", n)
			}
			return nil
		})
		if err := engine.Kill(); err != nil {
			t.Fatal(err)
		}
		if n := len(k.ChildWrites(mark)); n > 8 {
			t.Fatalf("the kill came too late, after %d writes", n)
		}
		if err := engine.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	total := func(want string) { t.Helper(); await(k, "Web", "web", "status.outputs.configmaps.total", want) }

	mark := k.Mark()
	input(k, "a", "map: me, pages: '10', text: one")
	killed(mark, 3)
	awaitPages(k, all...)
	total("10")
	if diff := cmp.Diff(creates, sorted(completed(k.ChildWrites(mark)))); diff != "" {
		t.Errorf("the creations of both engines (-want +got):\n%s", diff)
	}

	kept := k.Get("v1/ConfigMap", "a-0")
	mark = k.Mark()
	k.Delete("v1/Secret", "a")
	killed(mark, 3)
	awaitPages(k, "a-0 one")
	total("1")
	await(k, "Web", "web", "status.detached.outputs", "1")
	if diff := cmp.Diff(deletes, sorted(completed(k.ChildWrites(mark)))); diff != "" {
		t.Errorf("the deletions of both engines (-want +got):\n%s", diff)
	}
	if now := k.Get("v1/ConfigMap", "a-0"); now.GetResourceVersion() != kept.GetResourceVersion() {
		t.Errorf("the kept output was written: %v, before %v", now.Object, kept.Object)
	}
}
