package grpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
)

// TestAnEqualAnswerIsDecodedOnce asks by unary calls for the same large answer again, then for one
// with another first child: the equal children are the same memory, and each answer is the hook's.
func TestAnEqualAnswerIsDecodedOnce(t *testing.T) {
	var text atomic.Value
	children := func() []json.RawMessage {
		all := make([]json.RawMessage, 50)
		for i := range all {
			all[i] = json.RawMessage(fmt.Sprintf(
				`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d"},"data":{"rest":%q}}`,
				i, strings.Repeat("x", 900)))
		}
		all[0] = json.RawMessage(fmt.Sprintf(
			`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-0"},"data":{"text":%q}}`, text.Load()))
		return all
	}
	behave := func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{Status: json.RawMessage(`{}`), Children: children()}}
	}
	address := serve(t, func(s *grpc.Server) {
		compositev1.RegisterCompositeHookServiceServer(s, transporttest.CompositeServer{Behave: behave})
	})
	b := budget.New(128 << 20)
	h, err := (&Transport{Memory: b}).Open(settings(fmt.Sprintf(`{"insecure":true,"mode":"Unary","target":%q}`, address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	parent, err := object.Decode([]byte(`{"apiVersion":"v1","kind":"Web","metadata":{"name":"web","uid":"u"}}`))
	if err != nil {
		t.Fatal(err)
	}
	q := &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: parent, Parent: parent}
	answer := func(word string) []json.RawMessage {
		t.Helper()
		text.Store(word)
		a, err := h.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(children(), a.Children); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		return a.Children
	}
	same := func(a, b json.RawMessage) bool { return &a[0] == &b[0] }
	first := answer("one")
	if again := answer("one"); !same(first[0], again[0]) {
		t.Error("an equal answer is decoded again")
	}
	if other := answer("two"); same(first[0], other[0]) || !same(first[1], other[1]) {
		t.Error("want the equal children, and no other, of the previous answer")
	}
	h.Forget(q.Parent.UID(), "")
	if kept := b.Share(budget.Answers).Usage().Bytes; kept != 0 {
		t.Errorf("%d bytes of a parent that is gone are kept", kept)
	}
}
