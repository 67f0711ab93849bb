package session

import (
	"fmt"
	"strings"
	"testing"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
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
	return &streamv1.EngineMessage{
		Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{
			Versions: []uint32{1}, SessionId: "s", Capabilities: allCapabilities,
		}},
	}
}

func called(c *streamv1.Call) *streamv1.EngineMessage {
	return &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Call{Call: c}}
}

func TestHooksRefuseBrokenStreams(t *testing.T) {
	const method = compositev1.CompositeHookService_Sync_FullMethodName
	cases := map[string]struct {
		messages []*streamv1.EngineMessage
		want     string
	}{
		"no hello":       {[]*streamv1.EngineMessage{called(&streamv1.Call{Id: 1})}, "the stream begins without a Hello"},
		"a second hello": {[]*streamv1.EngineMessage{hello(), hello()}, "got a second Hello"},
		"another version": {
			[]*streamv1.EngineMessage{
				{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{Versions: []uint32{2, 3}}}},
			},
			"speaks versions [2 3] of the protocol, this hook speaks 1",
		},
		"an upsert of nothing": {
			[]*streamv1.EngineMessage{hello(), called(&streamv1.Call{Id: 1, Method: method, Upserts: []*streamv1.Upsert{{}}})},
			"an upsert has neither object nor hash",
		},
		"a short hash": {
			[]*streamv1.EngineMessage{
				hello(),
				called(
					&streamv1.Call{
						Id:      1,
						Method:  method,
						Upserts: []*streamv1.Upsert{{Content: &streamv1.Upsert_Hash{Hash: []byte("x")}}},
					},
				),
			},
			"an upsert's hash has 1 bytes, expected 16",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			memory := NewState(0)
			h := NewHook(HookConfig{State: func(string) *State { return memory }})
			expectError(t, c.want, len(c.messages), func(i int) error { _, err := h.Receive(c.messages[i]); return err })
		})
	}
}

func TestAnUnknownMethodIsAnsweredOnItsOwn(t *testing.T) {
	_, h := direct(t, HookConfig{})
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
	e, h := direct(t, HookConfig{Calls: 2})
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
	h.Answer(work[0], &compositev1.SyncResponse{})
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

// TestTheTimeoutIsWhatRemainsWhenTheCallBegins has a question wait for the window: that time
// counts.
func TestTheTimeoutIsWhatRemainsWhenTheCallBegins(t *testing.T) {
	e, h := direct(t, HookConfig{Calls: 1})
	remaining := 10 * time.Second
	for _, subject := range []string{"a", "b"} {
		q := crowd(1).question(subject)
		q.Remaining = func() time.Duration { return remaining }
		e.Ask(q)
	}
	receive := func() *Work {
		t.Helper()
		out := e.Outbox()
		if len(out) != 1 {
			t.Fatalf("%d messages are sent, want one call", len(out))
		}
		got, err := h.Receive(out[0])
		if err != nil {
			t.Fatal(err)
		}
		return got.Work
	}
	first := receive()
	remaining = 3 * time.Second
	h.Answer(first, &compositev1.SyncResponse{})
	for _, m := range h.Outbox() {
		if _, err := e.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if second := receive(); first.Timeout != 10*time.Second || second.Timeout != 3*time.Second {
		t.Errorf("the timeouts are %s and %s, want 10s and 3s", first.Timeout, second.Timeout)
	}
}

// TestLargeQuestionsTravelInFragments and a larger one than the hook accepts is the question's
// fault.
func TestLargeQuestionsTravelInFragments(t *testing.T) {
	e, h := direct(t, HookConfig{MessageBytes: 5 << 20})
	e.Ask(crowd(3000).question("large"))
	for _, m := range e.Outbox() {
		if n := proto.Size(m); n > fragmentBytes+64 {
			t.Fatalf("a message has %d bytes", n)
		}
		if got, err := h.Receive(m); err != nil {
			t.Fatal(err)
		} else if got.Work != nil {
			h.Answer(got.Work, &compositev1.SyncResponse{})
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
	if len(outcomes) != 2 || outcomes[0].Response == nil || outcomes[1].Fault == nil ||
		!strings.Contains(outcomes[1].Fault.Error(), "the hook accepts at most 5242880") {
		t.Fatalf("got %.500v", outcomes)
	}
}

// TestAnswersOfAnotherTypeAreErrors and so are answers after an answer: nothing.
func TestAnswersOfAnotherTypeAreErrors(t *testing.T) {
	e, h := direct(t, HookConfig{})
	e.Ask(crowd(1).question("s"))
	for _, m := range e.Outbox() {
		got, err := h.Receive(m)
		if err != nil {
			t.Fatal(err)
		}
		h.Answer(got.Work, &decoratorv1.SyncResponse{})
		h.Answer(got.Work, &compositev1.SyncResponse{})
	}
	exchange(t, e, h)
	if o := e.Outcomes(); len(o) != 1 ||
		!strings.Contains(o[0].Refused.GetMessage(), "got a response of type *decoratorv1.SyncResponse") {
		t.Fatalf("got %v", o)
	}
}

// TestARequestThatCannotBeRebuiltEndsItsCallOnly refuses the call, keeps the set that came with it,
// and answers the next call.
func TestARequestThatCannotBeRebuiltEndsItsCallOnly(t *testing.T) {
	envelope, err := proto.Marshal(&compositev1.SyncRequest{Parent: &hookv1.ObservedObject{Name: "p"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*streamv1.Call)
		want   string
	}{
		"objects in the shell": {func(c *streamv1.Call) { c.Envelope = envelope },
			"holds objects, expected them in the slots"},
		"a request of another type": {func(c *streamv1.Call) { c.Envelope = []byte("\xff") },
			"the request is no *compositev1.SyncRequest"},
		"no place for the objects": {func(c *streamv1.Call) { c.Envelope = nil },
			"the request has places for 2 of its 3 objects"},
	} {
		t.Run(name, func(t *testing.T) {
			e, h := direct(t, HookConfig{})
			e.Ask(crowd(1).question("s"))
			for _, m := range e.Outbox() {
				c.change(m.GetCall())
				if got, err := h.Receive(m); err != nil || got.Work != nil {
					t.Fatalf("got %v %v, want neither work nor an error", got, err)
				}
			}
			exchange(t, e, h)
			if o := e.Outcomes(); len(o) != 1 || o[0].Refused.GetCode() != int32(code.Code_INTERNAL) ||
				!strings.Contains(o[0].Refused.GetMessage(), c.want) {
				t.Fatalf("got %v, want INTERNAL: %s", o, c.want)
			}
			e.Ask(crowd(1).question("s"))
			exchange(t, e, h)
			if o := e.Outcomes(); len(o) != 1 || o[0].Response == nil || o[0].Snapshot {
				t.Fatalf("the next call: got %v, want a response to what changed", o)
			}
		})
	}
}

// TestSubjectsFitIntoOneMessage reopens a session that holds more subjects than fit into a Welcome:
// those used last are kept.
func TestSubjectsFitIntoOneMessage(t *testing.T) {
	const limit = 4096
	memory := NewState(0)
	config := HookConfig{State: func(string) *State { return memory }}
	e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing, MessageBytes: limit})
	h := NewHook(config)
	e.Connect()
	exchange(t, e, h)
	name := func(n int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("a", 100), n) }
	const subjects = 100
	for n := range subjects {
		e.Ask(crowd(1).question(name(n)))
		exchange(t, e, h)
	}
	e.Disconnect()
	h.Lost()
	h = NewHook(config)
	e.Connect()
	for _, m := range e.Outbox() {
		if _, err := h.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	out := h.Outbox()
	if size := proto.Size(out[0]); len(out) != 1 || size > limit || size < limit-130 {
		t.Fatalf("got %d messages, the first of %d bytes; want one that fills %d bytes", len(out), size, limit)
	}
	held := out[0].GetWelcome().GetSubjects()
	if first := held[0].GetSubject(); first != name(subjects-1) {
		t.Errorf("the first subject is %s, want the one that was used last", first)
	}
	if len(memory.subjects) != len(held) {
		t.Errorf("%d subjects are held, %d are named: the engine forgets the others", len(memory.subjects), len(held))
	}
	if _, err := e.Receive(out[0]); err != nil {
		t.Fatal(err)
	}
	e.Outcomes()
	for _, n := range []int{0, subjects - 1} {
		e.Ask(crowd(1).question(name(n)))
		exchange(t, e, h)
		if o := e.Outcomes(); len(o) != 1 || o[0].Response == nil || o[0].Snapshot != (n == 0) {
			t.Errorf("subject %d: got %v, want a response; a snapshot where the holding was dropped", n, o)
		}
	}
}

// TestTheWholeMessageIsMeasured compares the message of an answer with the engine's limit, not the
// answer without its surroundings.
func TestTheWholeMessageIsMeasured(t *testing.T) {
	e, h := direct(t, HookConfig{})
	response := answerTo(crowd(20).request(true))
	answer := func(limit int) *streamv1.HookMessage {
		t.Helper()
		h.accepts = uint64(limit)
		e.Ask(crowd(1).question(""))
		for _, m := range e.Outbox() {
			got, err := h.Receive(m)
			if err != nil {
				t.Fatal(err)
			}
			h.Answer(got.Work, response)
		}
		out := h.Outbox()
		if _, err := e.Receive(out[0]); err != nil || len(out) != 1 {
			t.Fatalf("got %d messages, %v", len(out), err)
		}
		return out[0]
	}
	size := proto.Size(answer(0))
	if m := answer(size); m.GetAnswer().GetDesired() == nil {
		t.Errorf("an answer of %d bytes is refused where as many are accepted: %v", size, m)
	}
	if m := answer(size - 1); m.GetAnswer().GetError().GetCode() != int32(code.Code_RESOURCE_EXHAUSTED) {
		t.Errorf("an answer of %d bytes is sent where one byte less is accepted", size)
	}
}
