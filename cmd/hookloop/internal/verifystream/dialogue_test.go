package verifystream

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// entryPart returns the part of an object in the digest of an observed set.
func entryPart(slot uint32, object []byte) []byte {
	return hashOf(append([]byte{byte(slot), byte(slot >> 8), byte(slot >> 16), byte(slot >> 24)}, hashOf(object)...))
}

// entryKey is the key of an entry of a set.
type entryKey struct {
	slot            uint32
	namespace, name string
}

// model is a hook that computes the Nack that each call must have. It is slow and simple.
type model struct {
	t    *testing.T
	sets map[string]map[entryKey][]byte
}

func digestOfSet(set map[entryKey][]byte) string {
	var parts [][]byte
	for key, object := range set {
		parts = append(parts, entryPart(key.slot, object))
	}
	return hex.EncodeToString(digestOf(parts))
}

// held returns the object with a hash.
func (m *model) held(hash []byte, sent map[string][]byte) []byte {
	if object := sent[string(hash)]; object != nil {
		return object
	}
	for _, set := range m.sets {
		for _, object := range set {
			if slices.Equal(hashOf(object), hash) {
				return object
			}
		}
	}
	return nil
}

// call returns the reason of the Nack, or "".
func (m *model) call(c *streamv1.Call) string {
	base := m.sets[c.GetSubject()]
	next := map[entryKey][]byte{}
	if len(c.GetBase()) > 0 {
		if base == nil || digestOfSet(base) != hex.EncodeToString(c.GetBase()) {
			delete(m.sets, c.GetSubject())
			return "REASON_UNKNOWN_BASE"
		}
		for key, object := range base {
			next[key] = object
		}
	}
	for _, key := range c.GetRemoved() {
		delete(next, entryKey{key.GetSlot(), key.GetNamespace(), key.GetName()})
	}
	sent := map[string][]byte{}
	for _, up := range c.GetUpserts() {
		data := up.GetObject()
		if data == nil {
			data = m.held(up.GetHash(), sent)
		}
		if data == nil {
			delete(m.sets, c.GetSubject())
			return "REASON_UNKNOWN_OBJECT"
		}
		sent[string(hashOf(data))] = data
		o := &hookv1.ObservedObject{}
		if err := proto.Unmarshal(data, o); err != nil {
			m.t.Fatal(err)
		}
		next[entryKey{up.GetSlot(), o.GetNamespace(), o.GetName()}] = data
	}
	if digestOfSet(next) != hex.EncodeToString(c.GetDigest()) {
		m.t.Logf("call %d: the set has the digest %s, the dialogue has %x", c.GetId(), digestOfSet(next), c.GetDigest())
		delete(m.sets, c.GetSubject())
		return "REASON_DIGEST_MISMATCH"
	}
	if c.GetSubject() != "" {
		m.sets[c.GetSubject()] = next
	}
	return ""
}

// expectedNack returns the reason of the Nack in an expectation, and whether the expectation is for
// an answer to the call.
func expectedNack(steps []step, id uint64) (reason string, found bool) {
	for _, s := range steps {
		if s.Reconnect {
			break
		}
		got, _ := answerOf(any(s.Expect))
		answer, isAnswer := s.Expect["answer"].(map[string]any)
		if !isAnswer || got != id {
			continue
		}
		nack, _ := answer["nack"].(map[string]any)
		reason, _ = nack["reason"].(string)
		return reason, true
	}
	return "", false
}

// TestRecordedDigests replays each dialogue with a model of a hook: the recorded digests are those
// of the sets, except where the dialogue expects a Nack, and the reason of each Nack is right.
func TestRecordedDigests(t *testing.T) {
	all, err := dialogues()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, d := range all {
		t.Run(d.name, func(t *testing.T) {
			if d.Title == "" || len(d.Steps) == 0 {
				t.Error("a dialogue needs a title and steps")
			}
			m := &model{t: t, sets: map[string]map[entryKey][]byte{}}
			for n, s := range d.Steps {
				p := &player{dialogue: d, peer: newPeer(newMemory()), shared: newMemory()}
				if s.Hello != nil && (s.Hello["sessionId"] != nil || s.Hello["capabilities"] != nil) {
					m.sets = map[string]map[entryKey][]byte{}
				}
				if s.Burst != nil {
					s.Send = map[string]any{"call": s.Burst.Call}
				}
				if s.Send == nil {
					continue
				}
				message, err := p.message(s)
				if err != nil {
					t.Fatalf("step %d: %v", n+1, err)
				}
				for _, subject := range message.GetForget().GetSubjects() {
					delete(m.sets, subject)
				}
				want, answered := expectedNack(d.Steps[n:], message.GetCall().GetId())
				kept := answered || s.Burst != nil || message.GetCall().GetSubject() != ""
				if message.GetCall() == nil || !kept {
					continue
				}
				checked++
				if got := m.call(message.GetCall()); got != want {
					t.Errorf("step %d (%s): the model answers with %q, the dialogue expects %q", n+1, s.Note, got, want)
				}
			}
		})
	}
	if checked < 80 {
		t.Errorf("checked %d calls, expected at least 80", checked)
	}
}

// TestListDigest compares digests of lists with those that Python's hashlib returned.
func TestListDigest(t *testing.T) {
	for _, c := range []struct {
		items []string
		want  string
	}{
		{nil, "00000000000000000000000000000000"},
		{[]string{"one"}, "7a5430bd775a1445540663749fd2730d"},
		{[]string{"one", "two"}, "ca541bf2edf172b6bff7f882102df255"},
		{[]string{"two", "one"}, "c153e3be599fd37955e95d0e652ad091"},
		{[]string{"one", "one", "one"}, "6ec914aac825ea44de23ed3c7c6c2b5b"},
	} {
		var items [][]byte
		for _, item := range c.items {
			items = append(items, []byte(item))
		}
		if got := hex.EncodeToString(listDigest(items)); got != c.want {
			t.Errorf("%q: got %s, want %s", c.items, got, c.want)
		}
	}
}

// TestMatch covers the rules of expectations.
func TestMatch(t *testing.T) {
	for _, c := range []struct {
		name          string
		expected, got any
		want          string
	}{
		{"a message may have more fields", map[string]any{"a": "1"}, map[string]any{"a": "1", "b": "2"}, ""},
		{"a missing field", map[string]any{"a": "1"}, map[string]any{"b": "2"},
			`the message: expected the field a, got {"b":"2"}`},
		{"a document may not have more", map[string]any{"a": "1"}, document{map[string]any{"a": "1", "b": "2"}},
			`b: expected no such field, got "2"`},
		{"digits count", json.Number("9007199254740993"), json.Number("9007199254740992"),
			": expected 9007199254740993, got 9007199254740992"},
		{"a number is no text", json.Number("1"), "1", `: expected 1, got "1"`},
		{"the length of a list", []any{"a"}, []any{"a", "b"}, `: expected ["a"], got ["a","b"]`},
		{"a part of a text", map[string]any{"contains": "larger"}, "it is larger", ""},
		{"not a part of a text", map[string]any{"contains": "larger"}, "small",
			`: expected a text that contains "larger", got "small"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := match(c.expected, c.got, ""); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
