package session

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// operations is how many random operations one test makes; HOOKLOOP_SESSION_OPERATIONS asks for
// more.
func operations(t *testing.T) int {
	text := os.Getenv("HOOKLOOP_SESSION_OPERATIONS")
	if text == "" {
		return 200_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestAnyHistoryEqualsWholeRequests compares every question and every answer with the whole one,
// through random histories.
func TestAnyHistoryEqualsWholeRequests(t *testing.T) {
	for _, faults := range []float64{0, 0.02, 0.2} {
		t.Run(fmt.Sprint("faults ", faults), func(t *testing.T) {
			t.Parallel()
			const each = 5000
			var (
				sum    tally
				counts Counts
			)
			for seed := range uint64(operations(t) / each) {
				w := newFixture(t, seed, faults)
				for range each {
					w.step()
				}
				settle(t, w)
				forgetAll(t, w.engine)
				sum.add(w.tally)
				counts.add(w.engine.Counts())
			}
			t.Logf("%+v; engine %+v", sum, counts)
		})
	}
}

// settle ends the faults, and asks about everything: the answers must come.
func settle(t *testing.T, w *fixture) {
	w.faults = 0
	w.reconnect()
	before := w.tally.answers
	for len(w.asked) > 0 || !w.engine.Open() {
		w.carry()
	}
	for subject := range w.states {
		w.ask(subject)
	}
	for rounds := 0; len(w.asked) > 0; rounds++ {
		w.carry()
		for _, work := range w.work {
			w.hook.Answer(work, answerTo(work.Request.(*compositev1.SyncRequest)))
		}
		w.work = nil
		if rounds > 1000 {
			t.Fatalf("%d questions have no answer", len(w.asked))
		}
	}
	if got := w.tally.answers - before; got != len(w.states) {
		t.Fatalf("got %d answers, want %d", got, len(w.states))
	}
}

// direct is an engine and a hook without a network between them, in an open session.
func direct(t testing.TB, s HookConfig) (*Engine[*thing], *Hook) {
	t.Helper()
	memory := NewState(0)
	s.State = func(string) *State { return memory }
	e := NewEngine(EngineConfig[*thing]{SessionID: "s", Encode: encodeThing})
	h := NewHook(s)
	e.Connect()
	exchange(t, e, h)
	return e, h
}

// exchange carries messages until there are none, and answers all work. It returns the bytes that
// travelled.
func exchange(t testing.TB, e *Engine[*thing], h *Hook) (bytes int) {
	t.Helper()
	return exchangeBy(t, e, h, func(w *Work) { h.Answer(w, answerTo(w.Request.(*compositev1.SyncRequest))) })
}

// exchangeBy is exchange with a function that answers.
func exchangeBy(t testing.TB, e *Engine[*thing], h *Hook, answer func(*Work)) (bytes int) {
	t.Helper()
	for {
		down := e.Outbox()
		up := h.Outbox()
		if len(down)+len(up) == 0 {
			return bytes
		}
		for _, m := range down {
			bytes += proto.Size(m)
			got, err := h.Receive(through(t, m))
			if err != nil {
				t.Fatal(err)
			}
			if got.Work != nil {
				answer(got.Work)
			}
		}
		for _, m := range up {
			bytes += proto.Size(m)
			if _, err := e.Receive(through(t, m)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// crowd is a parent with many children.
func crowd(n int) *state {
	s := &state{controller: &thing{name: "c", body: "c"}, parent: &thing{name: "p", body: "p"}}
	for i := range n {
		s.children = append(s.children, child(i, 0))
	}
	return s
}

func child(i, version int) *thing {
	return &thing{namespace: "a", name: fmt.Sprintf("child-%05d", i), body: fmt.Sprintf("%05d %1000d", i, version)}
}

// BenchmarkOneChildOfMany counts what one changed child costs both sides together; the hook's
// function is that of the test.
func BenchmarkOneChildOfMany(b *testing.B) {
	for _, n := range []int{1000, 3000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			e, h := direct(b, HookConfig{})
			s := crowd(n)
			e.Ask(s.question("s"))
			snapshot := exchange(b, e, h)
			bytes := 0
			for i := 0; b.Loop(); i++ {
				s.children[i%n] = child(i%n, i+1)
				s.children = append([]*thing(nil), s.children...)
				e.Ask(s.question("s"))
				bytes += exchange(b, e, h)
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "bytes/op")
			b.ReportMetric(float64(snapshot), "bytes/snapshot")
		})
	}
}

// TestBrokenStreams gives each side what the protocol does not allow: the error names it, and
// the expected message.
func TestBrokenStreams(t *testing.T) {
	welcome := &streamv1.Welcome{Version: Version, Window: &streamv1.Window{Calls: 1, Bytes: 1}}
	fragment := func(index uint32, total uint64, data string) *streamv1.HookMessage {
		return &streamv1.HookMessage{
			Message: &streamv1.HookMessage_Fragment{
				Fragment: &streamv1.Fragment{Index: index, TotalBytes: total, Data: []byte(data)},
			},
		}
	}
	said := func(a *streamv1.Answer) *streamv1.HookMessage {
		return &streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: a}}
	}
	greeting := &streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: welcome}}
	refusal := &streamv1.Answer_Error{Error: &statuspb.Status{Code: 13}}
	cases := map[string]struct {
		messages []*streamv1.HookMessage
		want     string
	}{
		"no welcome": {[]*streamv1.HookMessage{said(&streamv1.Answer{})}, "the hook's first message is no Welcome"},
		"another version": {
			[]*streamv1.HookMessage{{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{Version: 7}}}},
			"the hook chose version 7 of the protocol, expected 1",
		},
		"a second welcome": {
			[]*streamv1.HookMessage{greeting, greeting},
			"got *streamv1.HookMessage_Welcome in an open session",
		},
		"an unknown call": {
			[]*streamv1.HookMessage{greeting, said(&streamv1.Answer{CallId: 9, Outcome: refusal})},
			"got an answer to call 9, which was never made",
		},
		"answered twice": {
			[]*streamv1.HookMessage{
				greeting,
				said(&streamv1.Answer{CallId: 1, Outcome: refusal}),
				said(&streamv1.Answer{CallId: 1, Outcome: refusal}),
			},
			"got a second answer to call 1",
		},
		"nothing in it": {
			[]*streamv1.HookMessage{greeting, said(&streamv1.Answer{CallId: 1})},
			"the answer to call 1 has no outcome",
		},
		"too large": {
			[]*streamv1.HookMessage{fragment(0, 1<<40, "x")},
			"a message of 1099511627776 bytes is larger than the maximum of 67108864",
		},
		"a fragment missing": {
			[]*streamv1.HookMessage{fragment(0, 10, "x"), fragment(2, 10, "y")},
			"fragment 2 of 10 bytes, expected fragment 1 of 10 bytes",
		},
		"too much data": {[]*streamv1.HookMessage{fragment(0, 2, "xyz")}, "fragment 0 has 3 bytes, expected 1 to 2"},
		"a fragment cut short": {
			[]*streamv1.HookMessage{fragment(0, 10, "x"), greeting},
			"got *streamv1.HookMessage_Welcome between fragments",
		},
		"fragments of nothing": {[]*streamv1.HookMessage{fragment(0, 1, "\xff")}, "the fragments are no message"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			e := NewEngine(EngineConfig[*thing]{Encode: encodeThing})
			e.Connect()
			e.Ask(crowd(1).question("s"))
			expectError(t, c.want, len(c.messages), func(i int) error { _, err := e.Receive(c.messages[i]); return err })
		})
	}
}
