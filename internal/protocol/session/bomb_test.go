package session

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// ledger is a Reserver with a limit.
type ledger struct{ used, peak, limit int64 }

var errFull = errors.New("no memory")

func (l *ledger) TryAcquire(n int64) error {
	if l.used+n > l.limit {
		return errFull
	}
	l.used += n
	l.peak = max(l.peak, l.used)
	return nil
}

func (l *ledger) Release(n int64) { l.used -= n }

// bombed returns an engine with an open first call.
func bombed(t *testing.T, limit int64) (*Engine[*thing], *ledger) {
	t.Helper()
	e, h := direct(t, HookConfig{})
	l := &ledger{limit: limit}
	e.config.Reserver = l
	e.config.MessageBytes = 1 << 20
	e.Ask(crowd(1).question("s"))
	for _, m := range e.Outbox() {
		if _, err := h.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	return e, l
}

// TestBombsInAnswers fills repeated fields with empty elements: the answer is refused by its size,
// before anything is built.
func TestBombsInAnswers(t *testing.T) {
	conditions := protowire.AppendTag(nil, 3, protowire.BytesType) // SyncResponse.details
	conditions = protowire.AppendString(conditions, strings.Repeat("\x12\x00", 400_000))
	dependencies := []byte(strings.Repeat("\x22\x00", 400_000)) // DesiredObject.depends_on
	for name, d := range map[string]*streamv1.Desired{
		"response": {Envelope: conditions},
		"object":   {Pieces: []*streamv1.Piece{{Content: &streamv1.Piece_Insert{Insert: dependencies}}}},
	} {
		t.Run(name, func(t *testing.T) {
			e, l := bombed(t, 1<<40)
			got := received(t, e, &streamv1.Answer{Outcome: &streamv1.Answer_Desired{Desired: d}})
			if got.Fault == nil || !strings.Contains(got.Fault.Error(), "takes more than 4194304 bytes of memory") ||
				l.peak != 0 {
				t.Errorf("the fault is %v, expected one of memory", got.Fault)
			}
		})
	}
}

// TestAnswerReservesMemory until the outcome is released, and is refused without memory. The
// next one is fine.
func TestAnswerReservesMemory(t *testing.T) {
	e, l := bombed(t, 1<<20)
	insert, err := proto.Marshal(&hookv1.DesiredObject{Body: make([]byte, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	list := &itemList{}
	list.add(item{hash: hashOf(insert), size: len(insert)}, false)
	answer := &streamv1.Answer{Outcome: &streamv1.Answer_Desired{Desired: &streamv1.Desired{
		Pieces: []*streamv1.Piece{{Content: &streamv1.Piece_Insert{Insert: insert}}}, Digest: list.digest.wire(),
	}}}
	l.limit = 1000
	if got := received(t, e, answer); !errors.Is(got.Exhausted, errFull) || l.used != 0 {
		t.Errorf("without memory: %+v with %d bytes reserved", got, l.used)
	}
	l.limit = 1 << 20
	e.Ask(crowd(1).question("s"))
	got := received(t, e, answer)
	if got.Response == nil || got.Reserved < 1000 || l.used != got.Reserved {
		t.Errorf("got %+v with %d bytes reserved, expected a response of more than 1000", got, l.used)
	}
}

// TestARefusalReservesMemory until the outcome is released, as a response does: its details can be
// as large as a message.
func TestARefusalReservesMemory(t *testing.T) {
	e, l := bombed(t, 1<<20)
	refusal := &streamv1.Answer{Outcome: &streamv1.Answer_Error{Error: &statuspb.Status{
		Code: 9, Details: []*anypb.Any{{TypeUrl: "type.googleapis.com/a.B", Value: make([]byte, 100_000)}},
	}}}
	got := received(t, e, refusal)
	if got.Refused == nil || got.Reserved < 100_000 || l.used != got.Reserved {
		t.Errorf("a status with %d details: the outcome has %d bytes, %d are reserved, expected more than 100,000",
			len(got.Refused.GetDetails()), got.Reserved, l.used)
	}
	l.Release(got.Reserved)
	l.limit = 100_000
	e.Ask(crowd(1).question("s"))
	if got := received(t, e, refusal); !errors.Is(got.Exhausted, errFull) || l.used != 0 {
		t.Errorf("without memory: %v with %d bytes reserved", got.Exhausted, l.used)
	}
}

// TestFragmentsReserveMemory while the message is read, and count as the session's until it is
// complete.
func TestFragmentsReserveMemory(t *testing.T) {
	e, h := direct(t, HookConfig{})
	l := &ledger{limit: 16 << 20}
	e.config.Reserver = l
	h.Trigger(&streamv1.Trigger{LabelSelector: strings.Repeat("a", 3<<20)})
	fragments := h.Outbox()
	before := e.Bytes()
	for _, m := range fragments[:2] {
		if _, err := e.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if got := e.Bytes() - before; got < 2<<20 || !e.Shrink(1<<20) || e.Shrink(16<<20) {
		t.Errorf("two fragments count as %d bytes, expected them to be the session's", got)
	}
	for _, m := range fragments[2:] {
		if _, err := e.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if e.Bytes() != before || l.used != 0 || l.peak < 3<<20 {
		t.Errorf("%d bytes are held after the message and %d reserved, at most %d", e.Bytes()-before, l.used, l.peak)
	}
	l.limit = 1 << 20
	h.Trigger(&streamv1.Trigger{LabelSelector: strings.Repeat("a", 3<<20)})
	var err error
	for _, m := range h.Outbox() {
		_, err = e.Receive(m)
	}
	if !errors.Is(err, errFull) {
		t.Errorf("%v, expected the reserver's error", err)
	}
}

// welcomeOf returns a Welcome that names subjects, in fragments.
func welcomeOf(subjects int, name func(int) string) []*streamv1.HookMessage {
	w := &streamv1.Welcome{
		Version: Version, Window: &streamv1.Window{Calls: 1, Bytes: 1}, Capabilities: allCapabilities,
	}
	for i := range subjects {
		w.Subjects = append(w.Subjects, &streamv1.SubjectState{Subject: name(i), Digest: make([]byte, 16)})
	}
	m := &streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: w}}
	return fragmented(m, proto.Size(m), func(f *streamv1.Fragment) *streamv1.HookMessage {
		return &streamv1.HookMessage{Message: &streamv1.HookMessage_Fragment{Fragment: f}}
	})
}

// connected returns an engine with a stream, after the hook's Welcome. Its Hello is sent.
func connected(t *testing.T, welcome []*streamv1.HookMessage) *Engine[*thing] {
	t.Helper()
	e := NewEngine(EngineConfig[*thing]{SessionID: "a", Encode: encodeThing})
	e.Connect()
	for len(e.Outbox()) > 0 { // the last one means that all is sent
	}
	for _, m := range welcome {
		if _, err := e.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	if !e.Open() {
		t.Fatal("the session is not open")
	}
	return e
}

// TestWelcomeOfAnySize is accepted up to the message limit: some of the subjects that the engine
// does not know are forgotten, in small messages, which count as the session's until they are sent.
func TestWelcomeOfAnySize(t *testing.T) {
	for title, name := range map[string]func(int) string{
		"many":     func(i int) string { return fmt.Sprintf("%064d", i) },
		"short":    func(i int) string { return fmt.Sprint(i) },
		"the same": func(int) string { return "" },
		"long":     func(i int) string { return strings.Repeat("x", 40_000) + fmt.Sprint(i) },
		"too long": func(i int) string { return strings.Repeat("x", 1<<20) + fmt.Sprint(i) },
	} {
		t.Run(title, func(t *testing.T) {
			subjects := min(100_000, 8<<20/len(name(0)+"x"))
			e := connected(t, welcomeOf(subjects, name))
			held := e.Bytes()
			bytes := 0
			names := 0
			out := e.Outbox()
			for _, m := range out {
				forgotten := m.GetForget().GetSubjects()
				size := len(strings.Join(forgotten, ""))
				if n := len(forgotten); n == 0 || n > forgetNames || n > 1 && size > forgetBytes {
					t.Errorf("a message names %d subjects in %d bytes, expected 1 to %d in at most %d", n, size, forgetNames,
						forgetBytes)
				}
				bytes += size + nameBytes*len(forgotten)
				names += len(forgotten)
			}
			if bytes > maxReturned || title != "too long" && names == 0 {
				t.Errorf("%d subjects in %d bytes are forgotten, expected at most %d bytes", names, bytes, maxReturned)
			}
			if held < bytes || e.Bytes() != held || held > 2*maxReturned {
				t.Errorf("%d bytes count, and %d while they are sent, expected more than %d", held, e.Bytes(), bytes)
			}
			if e.Shrink(held) || bytes > 0 && !e.Shrink(bytes/2) {
				t.Error("the stream is ended with memory for the names, or continues without")
			}
			e.Outbox()
			if e.Bytes() != 0 {
				t.Errorf("%d bytes count after they are sent", e.Bytes())
			}
		})
	}
}

// flooded returns an engine with questions about parents of a size, all of them within the hook's
// window.
func flooded(t *testing.T, calls, each int) *Engine[*thing] {
	t.Helper()
	e := connected(t, []*streamv1.HookMessage{{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
		Version: Version, Window: &streamv1.Window{Calls: 1 << 30, Bytes: 1 << 60}, Capabilities: allCapabilities,
	}}}})
	for n := range calls {
		s := &state{controller: &thing{name: "c"}, parent: &thing{name: fmt.Sprint(n), body: strings.Repeat("p", each)}}
		e.Ask(s.question(fmt.Sprint(n)))
	}
	return e
}

// TestUnsentMessagesHoldCallsBack starts no more calls while the hook does not read, whatever its
// window, and continues when it does.
func TestUnsentMessagesHoldCallsBack(t *testing.T) {
	const calls, each = 20, 1_000_000
	e := flooded(t, calls, each)
	most := maxUnsent + 2*each
	sent := 0
	if queued := e.streamBytes(); queued < maxUnsent {
		t.Errorf("%d bytes wait for the hook, expected %d or more", queued, maxUnsent)
	}
	for out := e.Outbox(); len(out) > 0; out = e.Outbox() {
		if queued := e.streamBytes(); queued > most {
			t.Errorf("%d bytes wait for the hook, expected at most %d", queued, most)
		}
		if e.Shrink(100_000) {
			t.Error("the engine's own calls end the stream")
		}
		for _, m := range out {
			if m.GetCall() != nil {
				sent++
			}
		}
	}
	if sent != calls {
		t.Errorf("%d calls are sent, expected all %d", sent, calls)
	}
}

// TestNothingFollowsGoAway ends a stream while questions wait for the hook to read: GoAway is the
// last message.
func TestNothingFollowsGoAway(t *testing.T) {
	const calls = 20
	e := flooded(t, calls, 1_000_000)
	e.GoAway(&statuspb.Status{Code: int32(code.Code_ABORTED)})
	if e.Open() {
		t.Error("the engine takes questions for a stream that it ends")
	}
	e.Cancel(1)
	e.Forget("0")
	e.AnswerTrigger(&streamv1.TriggerResult{Id: 1})
	var sent []*streamv1.EngineMessage
	for out := e.Outbox(); len(out) > 0; out = e.Outbox() {
		sent = append(sent, out...)
	}
	if n := len(sent); n == 0 || n > calls || sent[n-1].GetGoAway() == nil {
		t.Errorf("of %d messages the last is %.100v, want GoAway, and a part of the %d calls before", n, sent[n-1], calls)
	}
	e.Disconnect()
	if n := len(e.Outcomes()); n != calls-1 { // one is cancelled
		t.Errorf("%d questions are lost, want %d", n, calls-1)
	}
}
