package session

import (
	"slices"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
)

// without returns all capabilities but one.
func without(feature streamv1.Capability) []streamv1.Capability {
	return slices.DeleteFunc(slices.Clone(allCapabilities), func(c streamv1.Capability) bool { return c == feature })
}

// pair opens a session between two sides with some capabilities.
func pair(t *testing.T, engine, hook []streamv1.Capability) (*Engine[*thing], *Hook, *State) {
	t.Helper()
	e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing, Capabilities: engine})
	memory := NewState(0)
	h := NewHook(HookConfig{Capabilities: hook, State: func(string) *State { return memory }})
	e.Connect()
	exchange(t, e, h)
	return e, h, memory
}

// calls puts a question, and returns the messages with which the engine makes the call.
func calls(e *Engine[*thing], q Question[*thing]) []*streamv1.EngineMessage {
	e.Ask(q)
	return e.Outbox()
}

// deliver gives messages to a hook, which answers the call.
func deliver(t *testing.T, h *Hook, messages []*streamv1.EngineMessage) []*streamv1.HookMessage {
	t.Helper()
	for _, m := range messages {
		got, err := h.Receive(m)
		if err != nil {
			t.Fatal(err)
		}
		if got.Work != nil {
			h.Answer(got.Work, answerTo(got.Work.Request.(*compositev1.SyncRequest)))
		}
	}
	return h.Outbox()
}

// TestAFeatureIsUsedOnlyIfBothSidesHaveIt lets each side lack each feature.
func TestAFeatureIsUsedOnlyIfBothSidesHaveIt(t *testing.T) {
	for _, c := range []struct {
		name         string
		engine, hook []streamv1.Capability
	}{
		{"both sides have all", nil, nil},
		{"the hook lacks changes", nil, without(changes)}, {"the engine lacks changes", without(changes), nil},
		{"the hook lacks hashes", nil, without(objectHashes)}, {"the engine lacks hashes", without(objectHashes), nil},
		{"the hook lacks fragments", nil, without(fragments)}, {"the engine lacks fragments", without(fragments), nil},
		{"the hook lacks resume", nil, without(resume)}, {"the engine lacks resume", without(resume), nil},
		{"the hook has none", nil, []streamv1.Capability{}},
		{"the hook has an unknown one", nil, []streamv1.Capability{0, 99}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, h, memory := pair(t, c.engine, c.hook)
			lacks := func(feature streamv1.Capability) bool {
				return c.engine != nil && !slices.Contains(c.engine, feature) ||
					c.hook != nil && !slices.Contains(c.hook, feature)
			}
			same := crowd(2) // equal objects are compared by identity
			for _, m := range deliver(t, h, calls(e, same.question("a"))) {
				if _, err := e.Receive(m); err != nil {
					t.Fatal(err)
				}
			}
			again := calls(e, same.question("a"))[0].GetCall()
			if snapshot := len(again.GetBase()) == 0; snapshot != lacks(changes) ||
				(again.GetSubject() == "") != lacks(changes) {
				t.Errorf("a second call: snapshot %t, subject %q", snapshot, again.GetSubject())
			}
			shared := calls(e, same.question("b"))[0].GetCall()
			named := slices.ContainsFunc(shared.GetUpserts(), func(u *streamv1.Upsert) bool { return u.GetHash() != nil })
			if named == (lacks(changes) || lacks(objectHashes)) {
				t.Errorf("objects of another subject: named by hash %t", named)
			}
			large := crowd(1)
			large.parent.body = strings.Repeat("x", 3<<20)
			messages := calls(e, large.question("c"))
			if split := messages[0].GetFragment() != nil; split == lacks(fragments) {
				t.Errorf("a large call: in fragments %t", split)
			}
			// The hook answers with a status as large as the parent's body. One piece has no room for it.
			out := deliver(t, h, messages)
			if (out[0].GetFragment() != nil) == lacks(fragments) {
				t.Errorf("a large answer: in fragments %t", out[0].GetFragment() != nil)
			}
			if refusal := out[0].GetAnswer().GetError(); strings.Contains(refusal.GetMessage(), "larger than max") !=
				lacks(fragments) {
				t.Errorf("a large answer: the error is %v", refusal)
			}
			e.Disconnect()
			h.Lost()
			dropped := lacks(changes) || lacks(resume)
			if (len(e.peer.subjects) == 0) != dropped {
				t.Errorf("after the stream the engine keeps %d subjects", len(e.peer.subjects))
			}
			if (len(memory.subjects) == 0) != dropped {
				t.Errorf("after the stream the hook keeps %d subjects", len(memory.subjects))
			}
		})
	}
}

// TestBothSidesStateTheirCapabilities in their first messages.
func TestBothSidesStateTheirCapabilities(t *testing.T) {
	e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing})
	e.Connect()
	hello := e.Outbox()[0]
	if got := hello.GetHello().GetCapabilities(); !slices.Equal(got, allCapabilities) {
		t.Errorf("the engine states %v", got)
	}
	h := NewHook(HookConfig{Methods: []string{"/a.B/C"}, State: func(string) *State { return NewState(0) }})
	if _, err := h.Receive(hello); err != nil {
		t.Fatal(err)
	}
	welcome := h.Outbox()[0].GetWelcome()
	if got := welcome.GetCapabilities(); !slices.Equal(got, allCapabilities) || welcome.GetMethods()[0] != "/a.B/C" {
		t.Errorf("the hook states %v and the methods %v", got, welcome.GetMethods())
	}
}
