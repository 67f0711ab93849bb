package session

import (
	"strings"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
)

// expectError feeds messages, of which the last must be refused.
func expectError(t *testing.T, want string, n int, receive func(int) error) {
	t.Helper()
	for i := range n {
		err := receive(i)
		switch {
		case i < n-1 && err != nil:
			t.Fatalf("message %d: %v", i, err)
		case i == n-1 && (err == nil || !strings.Contains(err.Error(), want)):
			t.Fatalf("got %v, want %q", err, want)
		}
	}
}

func hello() *streamv1.EngineMessage {
	return &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{Versions: []uint32{1}, SessionId: "s"}}}
}

func called(c *streamv1.Call) *streamv1.EngineMessage {
	return &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Call{Call: c}}
}

func TestHooksRefuseBrokenStreams(t *testing.T) {
	shell := &hookv1.CompositeHookServiceSyncRequest{Parent: &hookv1.Object{Name: "p"}}
	data, err := proto.Marshal(shell)
	if err != nil {
		t.Fatal(err)
	}
	nothing := digest{}.wire()
	const method = hookv1.CompositeHookService_Sync_FullMethodName
	cases := map[string]struct {
		messages []*streamv1.EngineMessage
		want     string
	}{
		"no hello":        {[]*streamv1.EngineMessage{called(&streamv1.Call{Id: 1})}, "the stream begins without a Hello"},
		"a second hello":  {[]*streamv1.EngineMessage{hello(), hello()}, "got a second Hello"},
		"another version": {[]*streamv1.EngineMessage{{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{Versions: []uint32{2, 3}}}}}, "speaks versions [2 3] of the protocol, this hook speaks 1"},
		"objects in the shell": {[]*streamv1.EngineMessage{hello(), called(&streamv1.Call{Id: 1, Method: method, Digest: nothing, Request: data})},
			"holds objects, expected them in the slots"},
		"a request of another type": {[]*streamv1.EngineMessage{hello(), called(&streamv1.Call{Id: 1, Method: method, Digest: nothing, Request: []byte("\xff")})},
			"the request is no *hookv1.CompositeHookServiceSyncRequest"},
		"an upsert of nothing": {[]*streamv1.EngineMessage{hello(), called(&streamv1.Call{Id: 1, Method: method, Upserts: []*streamv1.Upsert{{}}})},
			"an upsert has neither object nor hash"},
		"a short hash": {[]*streamv1.EngineMessage{hello(), called(&streamv1.Call{Id: 1, Method: method, Upserts: []*streamv1.Upsert{{Content: &streamv1.Upsert_Hash{Hash: []byte("x")}}}})},
			"an upsert's hash has 1 bytes, expected 16"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			memory := NewMemory(0)
			h := NewHook(HookSettings{Memory: func(string) *Memory { return memory }})
			expectError(t, c.want, len(c.messages), func(i int) error { _, err := h.Receive(c.messages[i]); return err })
		})
	}
}

func TestAnUnknownMethodIsAnsweredOnItsOwn(t *testing.T) {
	_, h := direct(t, HookSettings{})
	got, err := h.Receive(called(&streamv1.Call{Id: 1, Method: "/x.Y/Z"}))
	if err != nil || got.Work != nil {
		t.Fatalf("got %v %v, want neither work nor an error", got, err)
	}
	if a := h.Outbox()[0].GetAnswer(); a.GetError().GetCode() != int32(code.Code_UNIMPLEMENTED) {
		t.Fatalf("got %v, want UNIMPLEMENTED", a)
	}
}

// TestTheWindowIsKept begins no more calls than the hook grants, and the next with each answer.
func TestTheWindowIsKept(t *testing.T) {
	e, h := direct(t, HookSettings{Calls: 2})
	for _, subject := range []string{"a", "b", "c"} {
		e.Ask(crowd(1).question(subject))
	}
	var work []*Work
	receive := func() {
		t.Helper()
		for _, m := range e.Outbox() {
			got, err := h.Receive(m)
			if err != nil {
				t.Fatal(err)
			}
			if got.Work != nil {
				work = append(work, got.Work)
			}
		}
	}
	receive()
	if len(work) != 2 || e.Load() != 3 {
		t.Fatalf("%d calls are under way of %d, want 2 of 3", len(work), e.Load())
	}
	h.Answer(work[0], &hookv1.CompositeHookServiceSyncResponse{})
	for _, m := range h.Outbox() {
		if _, err := e.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	receive()
	if len(work) != 3 {
		t.Fatalf("%d calls were made, want 3", len(work))
	}
}

// TestLargeQuestionsTravelInFragments and what is larger than the hook accepts is the question's fault.
func TestLargeQuestionsTravelInFragments(t *testing.T) {
	e, h := direct(t, HookSettings{MessageBytes: 5 << 20})
	e.Ask(crowd(3000).question("large"))
	for _, m := range e.Outbox() {
		if n := proto.Size(m); n > fragmentBytes+64 {
			t.Fatalf("a message has %d bytes", n)
		}
		if got, err := h.Receive(m); err != nil {
			t.Fatal(err)
		} else if got.Work != nil {
			h.Answer(got.Work, &hookv1.CompositeHookServiceSyncResponse{})
		}
	}
	exchange(t, e, h)
	larger := crowd(6000)
	for i := range larger.children {
		larger.children[i] = child(i, 1)
	}
	e.Ask(larger.question("larger"))
	exchange(t, e, h)
	outcomes := e.Outcomes()
	if len(outcomes) != 2 || outcomes[0].Response == nil || outcomes[1].Fault == nil || !strings.Contains(outcomes[1].Fault.Error(), "the hook accepts at most 5242880") {
		t.Fatalf("got %.500v", outcomes)
	}
}

// TestAnswersOfAnotherTypeAreErrors and so are answers after an answer: nothing.
func TestAnswersOfAnotherTypeAreErrors(t *testing.T) {
	e, h := direct(t, HookSettings{})
	e.Ask(crowd(1).question("s"))
	for _, m := range e.Outbox() {
		got, err := h.Receive(m)
		if err != nil {
			t.Fatal(err)
		}
		h.Answer(got.Work, &hookv1.DecoratorHookServiceSyncResponse{})
		h.Answer(got.Work, &hookv1.CompositeHookServiceSyncResponse{})
	}
	exchange(t, e, h)
	if o := e.Outcomes(); len(o) != 1 || !strings.Contains(o[0].Refused.GetMessage(), "got a response of type *hookv1.DecoratorHookServiceSyncResponse") {
		t.Fatalf("got %v", o)
	}
}
