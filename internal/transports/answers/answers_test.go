package answers

import (
	"fmt"
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
