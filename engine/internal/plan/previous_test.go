package plan

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// podsIn is the input of a sync in a namespace with Pods as children.
func podsIn() Input {
	pods := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true}
	scope := Scope{ParentNamespace: "shop", ChildKinds: []ChildKind{{Resource: pods}}}
	return Input{Observed: &Observed{Scope: scope}, Previous: &Previous{}}
}

func answerOf(t *testing.T, in Input, items ...string) []Child {
	t.Helper()
	a := &hook.Answer{}
	for _, item := range items {
		a.Children = append(a.Children, json.RawMessage(item))
	}
	children, err := Children(in, a)
	if err != nil {
		t.Fatal(err)
	}
	return children
}

const (
	compactPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"n":1}}`
	spacedPod  = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "b"}, "spec": {"n": 1}}`
	managedPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c","managedFields":[]},"spec":{"n":1}}`
)

// TestOneCopyOfAnItem keeps the bytes of an item once, and its object is the one without spaces and
// managedFields.
func TestOneCopyOfAnItem(t *testing.T) {
	for item, raw := range map[string]string{
		compactPod: compactPod,
		spacedPod:  `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"n":1}}`,
		managedPod: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"c"},"spec":{"n":1}}`,
	} {
		in := podsIn()
		c := answerOf(t, in, item)[0]
		got, err := c.raw()
		if err != nil || string(got) != raw {
			t.Errorf("%s: the object is %s (%v), want %s", item, got, err, raw)
		}
		if held := in.Previous.Bytes(); held != childBytes+len(item) {
			t.Errorf("%s: %d bytes are held, want %d", item, held, childBytes+len(item))
		}
	}
}

// TestItemsAreDroppedAtRest drops the items of an answer after a sync. An equal answer then has the
// same list with its items again, and one with another item keeps the rest of it.
func TestItemsAreDroppedAtRest(t *testing.T) {
	in := podsIn()
	first := answerOf(t, in, compactPod, spacedPod, managedPod)
	in.Previous.Compact()
	for _, c := range first {
		if c.item != nil {
			t.Errorf("%s: the item is still held", c.Ref())
		}
	}
	if held := in.Previous.Bytes(); held != 3*childBytes {
		t.Errorf("%d bytes are held at rest, want %d", held, 3*childBytes)
	}
	again := answerOf(t, in, compactPod, spacedPod, managedPod)
	if &again[0] != &first[0] {
		t.Error("an equal answer has another list")
	}
	want := []string{compactPod, spacedPod, managedPod}
	if diff := cmp.Diff(want, itemsOf(again)); diff != "" {
		t.Errorf("items of an equal answer (-want +got):\n%s", diff)
	}
	in.Previous.Compact()
	const changed = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b"},"spec":{"n":2}}`
	other := answerOf(t, in, compactPod, changed, managedPod)
	if diff := cmp.Diff([]string{compactPod, changed, managedPod}, itemsOf(other)); diff != "" {
		t.Errorf("items of another answer (-want +got):\n%s", diff)
	}
	if other[0].Hash != first[0].Hash || other[1].Hash == first[1].Hash || other[2].Hash != first[2].Hash {
		t.Error("not exactly the changed item has another hash")
	}
}

// TestLargeAnswersStay keeps the items of many bytes, which are compared by their addresses.
func TestLargeAnswersStay(t *testing.T) {
	in := podsIn()
	large, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"},
		"spec": string(make([]byte, maxCompacted)),
	})
	if err != nil {
		t.Fatal(err)
	}
	children := answerOf(t, in, string(large))
	in.Previous.Compact()
	if children[0].item == nil {
		t.Error("the item was dropped")
	}
}

func itemsOf(children []Child) []string {
	var all []string
	for _, c := range children {
		all = append(all, string(c.item))
	}
	return all
}

// TestSizeOfAChild bounds what each child of a last answer takes, and compares it with the figures
// of the memory budget.
func TestSizeOfAChild(t *testing.T) {
	if size := reflect.TypeFor[Child]().Size(); size != childBytes {
		t.Errorf("a child takes %d bytes, want %d", size, childBytes)
	}
	if size := reflect.TypeFor[convergedChild]().Size(); size != convergedBytes {
		t.Errorf("a converged child takes %d bytes, want %d", size, convergedBytes)
	}
}
