package plan

import (
	"encoding/json"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestOneCopyOfAnItem keeps the bytes of an item once if the decoded object has the same bytes, and
// twice otherwise.
func TestOneCopyOfAnItem(t *testing.T) {
	pods := object.Resource{GVK: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Plural: "pods", Namespaced: true}
	scope := Scope{ParentNamespace: "shop", ChildKinds: []ChildKind{{Resource: pods}}}
	in := Input{Observed: &Observed{Scope: scope}, Previous: &Previous{}}
	for item, once := range map[string]bool{
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"n":1}}`:                    true,
		`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": {"n": 1}}`:           false,
		`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","managedFields":[]},"spec":{"n":1}}`: false,
	} {
		children, err := Children(in, &hook.Answer{Children: []json.RawMessage{json.RawMessage(item)}})
		if err != nil {
			t.Fatal(err)
		}
		c := children[0]
		if got := &c.raw[0] == &c.item[0]; got != once {
			t.Errorf("%s: the bytes are shared: %v, want %v", item, got, once)
		}
		held := childBytes + len(c.item)
		if !once {
			held += len(c.raw)
		}
		if got := in.Previous.Bytes(); got != held {
			t.Errorf("%s: %d bytes are held, want %d", item, got, held)
		}
		if string(c.item) != item {
			t.Errorf("the item is %s, want %s", c.item, item)
		}
	}
}
