package session

import (
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// seedBytes writes messages one after the other, each with its length before it, as a fuzz target
// reads them.
func seedBytes[M proto.Message](messages ...M) []byte {
	var out []byte
	for _, m := range messages {
		data, err := proto.Marshal(m)
		if err != nil || len(data) > 255 {
			continue
		}
		out = append(append(out, byte(len(data))), data...)
	}
	return out
}

// next takes a message from the front.
func next(data []byte) (message, rest []byte) {
	if len(data) == 0 {
		return nil, nil
	}
	n := min(int(data[0]), len(data)-1)
	return data[1 : 1+n], data[1+n:]
}

// FuzzHookMessages feeds an engine what a hook might send. Whatever it is, a question has at most
// one outcome, and a response that comes is one that the bytes spell.
func FuzzHookMessages(f *testing.F) {
	welcome := &streamv1.HookMessage{
		Message: &streamv1.HookMessage_Welcome{
			Welcome: &streamv1.Welcome{
				Version: 1, Capabilities: allCapabilities, Window: &streamv1.Window{Calls: 2, Bytes: 9999},
			},
		},
	}
	list := &itemList{}
	raw := []byte("\x12\x02{}")
	list.add(item{hash: hashOf(raw), size: len(raw)}, false)
	desired := &streamv1.Desired{
		Pieces: []*streamv1.Piece{{Content: &streamv1.Piece_Insert{Insert: raw}}},
		Digest: list.digest.wire(),
	}
	answer := func(id uint64, d *streamv1.Desired) *streamv1.HookMessage {
		return &streamv1.HookMessage{
			Message: &streamv1.HookMessage_Answer{
				Answer: &streamv1.Answer{CallId: id, Outcome: &streamv1.Answer_Desired{Desired: d}},
			},
		}
	}
	again := &streamv1.Desired{
		Base:   list.digest.wire(),
		Pieces: []*streamv1.Piece{{Content: &streamv1.Piece_Keep{Keep: &streamv1.Run{Count: 1}}}},
		Digest: list.digest.wire(),
	}
	nack := &streamv1.HookMessage{
		Message: &streamv1.HookMessage_Answer{
			Answer: &streamv1.Answer{CallId: 1, Outcome: &streamv1.Answer_Nack{Nack: &streamv1.Nack{}}},
		},
	}
	f.Add(seedBytes(welcome, answer(1, desired), answer(2, again)))
	f.Add(seedBytes(welcome, nack, answer(2, desired)))
	f.Fuzz(func(t *testing.T, data []byte) {
		e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing})
		e.Connect()
		s := crowd(2)
		open := map[uint64]bool{e.Ask(s.question("a")): true}
		for len(data) > 0 {
			var raw []byte
			raw, data = next(data)
			m := &streamv1.HookMessage{}
			if proto.Unmarshal(raw, m) != nil {
				continue
			}
			if _, err := e.Receive(m); err != nil {
				break
			}
			for _, o := range e.Outcomes() {
				if !open[o.CallID] {
					t.Fatalf("a second outcome for ticket %d", o.CallID)
				}
				delete(open, o.CallID)
				s.children[0] = child(0, len(data)+1)
				open[e.Ask(s.question("a"))] = true
			}
		}
		e.Disconnect()
		if lost := len(e.Outcomes()); lost != len(open) {
			t.Fatalf("%d of %d questions have an outcome", lost, len(open))
		}
	})
}

// FuzzEngineMessages feeds a hook what an engine might send. Whatever it is, a request that comes
// has its objects in their places, and work is answered once.
func FuzzEngineMessages(f *testing.F) {
	e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing})
	e.Connect()
	messages := e.Outbox()
	if _, err := e.Receive(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{
		Welcome: &streamv1.Welcome{
			Version: 1, Capabilities: allCapabilities, Window: &streamv1.Window{Calls: 9, Bytes: 9999},
		},
	}}); err != nil {
		f.Fatal(err)
	}
	s := &state{controller: &thing{name: "c"}, parent: &thing{name: "p"}, children: []*thing{{name: "a"}}}
	e.Ask(s.question("a"))
	s.children = []*thing{{name: "b", body: "x"}}
	e.Ask(s.question("a"))
	f.Add(seedBytes(append(messages, e.Outbox()...)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		memory := NewState(1000)
		h := NewHook(HookConfig{State: func(string) *State { return memory }})
		for len(data) > 0 {
			var raw []byte
			raw, data = next(data)
			m := &streamv1.EngineMessage{}
			if proto.Unmarshal(raw, m) != nil {
				continue
			}
			got, err := h.Receive(m)
			if err != nil {
				break
			}
			if got.Work == nil {
				continue
			}
			if r, ok := got.Work.Request.(*compositev1.SyncRequest); ok && len(r.GetChildren()) > 0 &&
				len(r.GetRelated()) > 0 {
				h.Answer(got.Work, answerTo(r))
			}
			h.Refuse(got.Work, &statuspb.Status{Code: 13})
		}
		h.Lost()
		for name := range memory.subjects {
			memory.forget(name)
		}
		if memory.bytes != 0 || len(memory.objects) != 0 {
			t.Fatalf("%d bytes and %d objects are held for nobody", memory.bytes, len(memory.objects))
		}
	})
}
