package answers

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// TestAnswersAreBounded keeps answers about more parents than the bound has room for.
func TestAnswersAreBounded(t *testing.T) {
	k := New(nil)
	data := make([]byte, 5<<20)
	for i := range 20 {
		parent, err := object.Decode(fmt.Appendf(nil,
			`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web","uid":"u%d"}}`, i))
		if err != nil {
			t.Fatal(err)
		}
		q := &hook.Question{Op: hook.Sync, Parent: parent}
		k.Put(q, data, &hook.Answer{Finalized: true})
		if a := k.Get(q, data); a == nil || !a.Finalized || k.SizeOf(q) != len(data) {
			t.Fatalf("answer %d is %v", i, a)
		}
	}
	if k.bytes > maxBytes || len(k.answers) != maxBytes/len(data) || k.order.Len() != len(k.answers) {
		t.Errorf("%d bytes of %d answers are kept", k.bytes, len(k.answers))
	}
	k.shrink(int64(len(data)))
	if len(k.answers) != 1 || k.bytes != len(data) {
		t.Errorf("%d bytes of %d answers are left", k.bytes, len(k.answers))
	}
}

// TestAnAnswerIsFoundByItsParts: the parts in which a response was received do not matter, its
// bytes do.
func TestAnAnswerIsFoundByItsParts(t *testing.T) {
	parent, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web","uid":"u"}}`))
	if err != nil {
		t.Fatal(err)
	}
	k := New(nil)
	q := &hook.Question{Op: hook.Sync, Parent: parent}
	data := make([]byte, 2*minBytes)
	for i := range data {
		data[i] = byte(i ^ i>>8)
	}
	k.Put(q, data, &hook.Answer{Finalized: true})
	for _, at := range []int{0, 1, 127, 128, 129, minBytes, len(data)} {
		if k.Get(q, data[:at], nil, data[at:]) == nil {
			t.Errorf("an answer in two parts, %d bytes and the rest, is not found", at)
		}
		other := slices.Concat(data[at:], data[:at])
		if same := at == 0 || at == len(data); (k.Get(q, other[:at], other[at:]) != nil) != same {
			t.Errorf("other bytes, of %d, are found: %v, want %v", at, !same, same)
		}
	}
}
