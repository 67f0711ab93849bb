package integration

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/test/kit"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// badStream is a fault of a hook on its stream, and its consequences.
type badStream struct {
	fault fault
	// reason and part belong to the parent's condition and Event; empty if the fault recovers
	// automatically.
	reason, part string
	// farewell is the engine's reason at the end of the stream; empty if the stream continues.
	farewell string
	// deaf reports that no parent can be served during the fault.
	deaf bool
}

var badStreams = map[string]badStream{
	"chooses another version of the protocol": {
		fault:  welcoming(func(w *streamv1.Welcome) { w.Version = 7 }),
		reason: "InvalidHookAnswer", part: "the hook chose version 7 of the protocol, expected 1",
		farewell: "InvalidArgument: the hook chose version 7 of the protocol, expected 1", deaf: true,
	},
	"sends no Welcome": {
		fault:  welcoming(nil),
		reason: "HookTimeout", part: "the hook has not said Welcome within 10s",
		farewell: "DeadlineExceeded: the hook has not said Welcome within 10s", deaf: true,
	},
	"answers a call that was never made": {
		fault:  answering(func(a *streamv1.Answer) []*streamv1.HookMessage { a.CallId += 1000; return saying(a) }),
		reason: "InvalidHookAnswer", part: "which was never made", farewell: "which was never made",
	},
	"answers twice": {
		fault:  answering(func(a *streamv1.Answer) []*streamv1.HookMessage { return saying(other(a), other(a)) }),
		reason: "", part: "", farewell: "got a second answer to call",
	},
	"answers nothing": {
		fault:  answering(func(a *streamv1.Answer) []*streamv1.HookMessage { a.Outcome = nil; return saying(a) }),
		reason: "InvalidHookAnswer", part: "has no outcome", farewell: "has no outcome",
	},
	"refuses with OK": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.Outcome = &streamv1.Answer_Error{Error: &statuspb.Status{Message: "all is well"}}
			return saying(a)
		}),
		reason: "InvalidHookAnswer", part: "the answer is an error with code 0 (OK)",
	},
	"announces more than the limit": {
		fault: answering(func(*streamv1.Answer) []*streamv1.HookMessage {
			return []*streamv1.HookMessage{part(0, 20<<20, "the beginning")}
		}),
		reason:   "InvalidHookAnswer",
		part:     "a message of 20971520 bytes is larger than the maximum of 16777216",
		farewell: "is larger than the maximum",
	},
	"sends more than the limit in one piece": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.GetDesired().Envelope = make([]byte, 17<<20)
			return saying(a)
		}),
		reason: "InvalidHookAnswer", part: "received message larger than max",
	},
	"cuts fragments short": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			return append([]*streamv1.HookMessage{part(0, 100, "the beginning")}, saying(a)...)
		}),
		reason: "InvalidHookAnswer", part: "between fragments", farewell: "between fragments",
	},
	"sends fragments of nothing": {
		fault: answering(func(*streamv1.Answer) []*streamv1.HookMessage {
			return []*streamv1.HookMessage{part(0, 4, "\xff\xff"), part(1, 4, "\xff\xff")}
		}),
		reason: "InvalidHookAnswer", part: "the fragments are no message", farewell: "the fragments are no message",
	},
	"names a wrong digest once": {
		fault: once(answering(wrongDigest)),
	},
	"names a wrong digest each time": {
		fault:  answering(wrongDigest),
		reason: "InvalidHookAnswer", part: "has another digest than the answer says",
	},
	"keeps what the engine does not hold": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.GetDesired().Base = make([]byte, 16)
			a.GetDesired().Pieces = []*streamv1.Piece{{Content: &streamv1.Piece_Keep{Keep: &streamv1.Run{First: 5, Count: 9}}}}
			return saying(a)
		}),
		reason: "InvalidHookAnswer", part: "refers to a list that the engine does not hold",
	},
	"misses everything for ever": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.Outcome = &streamv1.Answer_Nack{
				Nack: &streamv1.Nack{Status: &statuspb.Status{Message: "what are you talking about"}},
			}
			return saying(a)
		}),
		reason: "InvalidHookAnswer", part: `the hook still misses what the question refers to: "what are you talking about"`,
	},
	"answers garbage": {
		fault: answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
			a.GetDesired().Envelope = []byte("\xff\xff")
			return saying(a)
		}),
		reason: "InvalidHookAnswer", part: "the response is no hookloop.composite.v1.SyncResponse",
	},
	"hangs up half-way through an answer": {
		fault: hangingUp(answering(func(*streamv1.Answer) []*streamv1.HookMessage {
			return []*streamv1.HookMessage{part(0, 100, "the beginning")}
		})),
		reason: "HookUnreachable", part: "the hook hangs up",
	},
	"sends Welcome twice": {
		fault: answering(func(*streamv1.Answer) []*streamv1.HookMessage {
			return []*streamv1.HookMessage{{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{Version: 1}}}}
		}),
		reason: "InvalidHookAnswer", part: "in an open session", farewell: "in an open session",
	},
}

func other(a *streamv1.Answer) *streamv1.Answer { return proto.Clone(a).(*streamv1.Answer) }

func wrongDigest(a *streamv1.Answer) []*streamv1.HookMessage {
	if d := a.GetDesired(); d != nil {
		d.Digest = []byte(strings.Repeat("x", 16))
	}
	return saying(a)
}

// once limits a fault to the first answer.
func once(f fault) fault {
	done := false
	return func(m *streamv1.HookMessage) ([]*streamv1.HookMessage, bool) {
		if done || m.GetAnswer() == nil {
			return []*streamv1.HookMessage{m}, false
		}
		done = true
		return f(m)
	}
}

// TestBadStreams has a hook that breaks the protocol in many ways, connected to the real engine.
// The parent reports the fault, the hook gets the reason, nothing wrong is written, other parents
// are served, and everything recovers when the hook does.
func TestBadStreams(t *testing.T) {
	parallel(t)
	for name, c := range badStreams {
		t.Run("the hook "+name, func(t *testing.T) { c.run(t, start(t)) })
	}
}

func (c badStream) run(t *testing.T, k *kit.Kit) {
	h := serveFaulty(t)
	run(t, k, kit.Composite{Sync: "stream:" + h.address, Timeout: "2s"})
	k.Apply(parent("bad", page("bad", "text: one")))
	await(k, "v1/ConfigMap", "bad", "data.text", "one")
	mark := k.Settled(settled) // the audit log has a write a moment after the object has it
	h.turn(c.fault)
	k.Patch("Web", "bad", "spec: {answer: {children: ["+page("bad", "text: two")+"]}}")
	var want []string
	if c.reason != "" {
		k.AwaitFault("Web", "bad", c.reason, c.part)
	} else {
		await(k, "v1/ConfigMap", "bad", "data.text", "two")
		want = append(want, "update configmaps bad")
	}
	if c.farewell != "" {
		h.awaitGoAway(k, c.farewell)
	}
	if !c.deaf {
		k.Apply(parent("fine", page("fine", "text: one")))
		await(k, "v1/ConfigMap", "fine", "data.text", "one")
		want = append(want, "create configmaps fine")
	}
	k.Settled(settled)
	if diff := cmp.Diff(want, k.ChildWrites(mark), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("writes while the hook is bad (-want +got):\n%s", diff)
	}
	if c.reason != "" {
		want = append(want, "update configmaps bad")
	}
	h.turn(nil)
	await(k, "v1/ConfigMap", "bad", "data.text", "two")
	k.AwaitSynced("Web", "bad")
	k.Settled(settled)
	if diff := cmp.Diff(want, k.ChildWrites(mark)); diff != "" {
		t.Errorf("all writes (-want +got):\n%s", diff)
	}
}

// TestHookThatIsSilent never answers about one parent. The parent reports it at the deadline; much
// later the engine closes the stream.
func TestHookThatIsSilent(t *testing.T) {
	k := start(t)
	h := serveFaulty(t)
	run(t, k, kit.Composite{Sync: "stream:" + h.address, Timeout: "1s"})
	mark := k.Mark()
	h.turn(answering(func(*streamv1.Answer) []*streamv1.HookMessage { return nil }))
	k.Apply(parent("bad", page("bad", "text: one")))
	k.AwaitFault("Web", "bad", "HookTimeout", "no answer within 1s")
	k.Apply(parent("fine", page("fine", "text: one")))
	await(k, "v1/ConfigMap", "fine", "data.text", "one")
	select {
	case <-h.dismissed:
	case <-time.After(2 * kit.Deadline):
		t.Error("the stream of a hook that does not answer never ends")
	}
	h.awaitGoAway(k, "DeadlineExceeded: a cancelled call has no answer for 30s, not even CANCELLED")
	h.turn(nil)
	k.Patch("Web", "bad", "spec: {again: now}") // an edit ends its backoff
	await(k, "v1/ConfigMap", "bad", "data.text", "one")
	k.AwaitSynced("Web", "bad")
	if diff := cmp.Diff([]string{"create configmaps fine", "create configmaps bad"}, k.ChildWrites(mark)); diff != "" {
		t.Errorf("all writes (-want +got):\n%s", diff)
	}
}

// TestFloodOfTriggers requests a thousand syncs at the same time: most are refused, each gets a
// result, and questions continue meanwhile.
func TestFloodOfTriggers(t *testing.T) {
	const flood = 1000
	k := start(t)
	h := serveFaulty(t)
	run(t, k, kit.Composite{Sync: "stream:" + h.address})
	k.Apply(parent("bad", page("bad", "text: one")))
	await(k, "v1/ConfigMap", "bad", "data.text", "one")
	mark := k.Settled(settled) // the audit log has a write a moment after the object has it
	h.turn(once(answering(func(a *streamv1.Answer) []*streamv1.HookMessage {
		out := saying(a)
		for id := range uint64(flood) {
			out = append(
				out,
				&streamv1.HookMessage{
					Message: &streamv1.HookMessage_Trigger{Trigger: &streamv1.Trigger{Id: id + 1, Reason: "a flood"}},
				},
			)
		}
		return out
	})))
	k.Patch("Web", "bad", "spec: {answer: {children: ["+page("bad", "text: two")+"]}}")
	await(k, "v1/ConfigMap", "bad", "data.text", "two")
	k.Apply(parent("fine", page("fine", "text: one")))
	await(k, "v1/ConfigMap", "fine", "data.text", "one")
	k.Eventually("each trigger is answered", func() error {
		if n := len(h.answers()); n != flood {
			return fmt.Errorf("%d of %d are", n, flood)
		}
		return nil
	})
	taken := 0
	for _, a := range h.answers() {
		switch {
		case a.GetError() == nil:
			taken++
		case codes.Code(a.GetError().GetCode()) != codes.ResourceExhausted:
			t.Errorf("a trigger is answered with %v", a)
		}
	}
	t.Logf("%d of %d triggers were taken", taken, flood)
	if taken == 0 || taken > flood/5 {
		t.Errorf("%d triggers were taken, want the burst that is allowed, and a few more", taken)
	}
	awaitLines(k, "all writes", []string{"update configmaps bad", "create configmaps fine"},
		func() []string { return k.ChildWrites(mark) })
}
