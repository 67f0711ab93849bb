package session

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// received passes an answer to the engine's last call to the engine, and returns the outcome.
func received(t *testing.T, e *Engine[*thing], a *streamv1.Answer) Outcome {
	t.Helper()
	a.CallId = e.last
	if _, err := e.Receive(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: a}}); err != nil {
		t.Fatal(err)
	}
	out := e.Outcomes()
	if len(out) != 1 {
		t.Fatalf("got %d outcomes, want one", len(out))
	}
	return out[0]
}

func run(first, count int) *streamv1.Piece {
	return &streamv1.Piece{Content: &streamv1.Piece_Keep{Keep: &streamv1.Run{First: uint32(first), Count: uint32(count)}}}
}

// TestRunsDoNotMultiply names a list's items again and again, in few bytes: the list that would
// come of it is refused by its size.
func TestRunsDoNotMultiply(t *testing.T) {
	e, h := direct(t, HookConfig{})
	s := crowd(10)
	e.Ask(s.question("s"))
	exchange(t, e, h)
	e.Outcomes()
	held := e.peer.subjects["s"].list
	e.config.MessageBytes = 3 * uint64(held.size)
	for name, pieces := range map[string][]*streamv1.Piece{
		"one run, many times": {run(0, len(held.items)), run(0, len(held.items)), run(0, len(held.items)), run(0, 1)},
		"objects of their own": {
			run(0, len(held.items)), run(0, len(held.items)), run(0, len(held.items)-1),
			{Content: &streamv1.Piece_Insert{Insert: make([]byte, held.items[0].size+1)}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e.Ask(s.question("s"))
			before := e.Counts().Mismatches
			bytes := e.peer.bytes
			got := received(
				t,
				e,
				&streamv1.Answer{
					Outcome: &streamv1.Answer_Desired{Desired: &streamv1.Desired{Base: held.digest.wire(), Pieces: pieces}},
				},
			)
			if want := fmt.Sprintf("takes more than %d bytes", e.config.MessageBytes); got.Fault == nil ||
				!strings.Contains(got.Fault.Error(), want) {
				t.Errorf("the outcome is %v, want a fault: %s", got.Fault, want)
			}
			if e.Counts().Mismatches != before || e.Load() > 0 {
				t.Error("the question is asked again")
			}
			if e.peer.bytes != bytes || e.peer.subjects["s"].list != held {
				t.Error("the list is kept")
			}
		})
	}
}

// TestEmptyItemsCount refuses objects without content by their number.
func TestEmptyItemsCount(t *testing.T) {
	d := &streamv1.Desired{}
	for range 11 {
		d.Pieces = append(d.Pieces, &streamv1.Piece{Content: &streamv1.Piece_Insert{}})
	}
	if list, err := patch(nil, d, 10*itemBytes); err == nil {
		t.Errorf("got a list of %d bytes, want an error", list.bytes())
	}
}

// TestClaimsReserveNothing claims a long run of a list that has one item.
func TestClaimsReserveNothing(t *testing.T) {
	before := &itemList{}
	before.add(item{size: 1}, false)
	d := &streamv1.Desired{Base: before.digest.wire(), Pieces: []*streamv1.Piece{run(0, 1<<30)}}
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	_, err := patch(before, d, DefaultMessageBytes)
	runtime.ReadMemStats(&end)
	if err == nil || !strings.Contains(err.Error(), "expected some of the 1 that are held") {
		t.Errorf("got the error %v", err)
	}
	if got := end.TotalAlloc - start.TotalAlloc; got > 1<<20 {
		t.Errorf("a claim of %d bytes takes %d bytes", proto.Size(d), got)
	}
}

// TestBeliefsCountObjects keeps parents that are never asked about again, as after their deletion,
// within the limit: the objects that are remembered with them count, each once.
func TestBeliefsCountObjects(t *testing.T) {
	const each, limit = 20_000, 200_000
	e, h := direct(t, HookConfig{})
	e.peer.limit = limit
	shared := &thing{name: "c", body: strings.Repeat("c", each)}
	for n := range 100 {
		name := fmt.Sprint(n)
		s := &state{controller: shared, parent: &thing{name: name, body: strings.Repeat("p", each)}}
		e.Ask(s.question(name))
		exchange(t, e, h)
		pinned := 0
		for o := range e.peer.objects {
			pinned += len(o.body)
		}
		if pinned > e.peer.bytes || e.peer.bytes > limit {
			t.Fatalf("after %d parents, objects of %d bytes are remembered, %d bytes are counted, of %d at most",
				n+1, pinned, e.peer.bytes, limit)
		}
	}
	if got := len(e.peer.subjects); got < limit/each-3 {
		t.Errorf("%d subjects are remembered: the object that they share is counted with each", got)
	}
	forgetAll(t, e)
}

// forgetAll forgets the state of all peers of an engine; nothing may be left on the account.
func forgetAll(t *testing.T, e *Engine[*thing]) {
	t.Helper()
	for name := range e.peer.subjects {
		e.Forget(name)
	}
	if b := e.peer; b.bytes != 0 || len(b.objects) != 0 || len(b.hashes) != 0 {
		t.Fatalf("%d bytes, %d objects and %d hashes are kept for nobody", b.bytes, len(b.objects), len(b.hashes))
	}
}

// TestForgetAll drops the subjects with a prefix on both sides, and no others.
func TestForgetAll(t *testing.T) {
	e, h := direct(t, HookConfig{})
	for _, name := range []string{"a#1", "a#2", "a", "ab#1", "b#1"} {
		s := &state{controller: &thing{name: "c"}, parent: &thing{name: name}}
		e.Ask(s.question(name))
		exchange(t, e, h)
	}
	e.ForgetAll("a#")
	exchange(t, e, h)
	want := []string{"a", "ab#1", "b#1"}
	if got := slices.Sorted(maps.Keys(e.peer.subjects)); !slices.Equal(got, want) {
		t.Errorf("the engine keeps %v, want %v", got, want)
	}
	if got := slices.Sorted(maps.Keys(h.state.subjects)); !slices.Equal(got, want) {
		t.Errorf("the hook keeps %v, want %v", got, want)
	}
	forgetAll(t, e)
}

// TestWordsOfAHookAreCut repeats little of a hook's texts, and nothing that a terminal would
// obey.
func TestWordsOfAHookAreCut(t *testing.T) {
	long := "ä\x1b[31m\xff\n" + strings.Repeat("é", 1<<20)
	nack := &streamv1.Answer{Outcome: &streamv1.Answer_Nack{Nack: &streamv1.Nack{Status: &statuspb.Status{Message: long}}}}
	for name, tell := range map[string]func(e *Engine[*thing]) Outcome{
		"an error that is none": func(e *Engine[*thing]) Outcome {
			return received(t, e, &streamv1.Answer{Outcome: &streamv1.Answer_Error{Error: &statuspb.Status{Message: long}}})
		},
		"a second Nack": func(e *Engine[*thing]) Outcome {
			nack.CallId = e.last
			if _, err := e.Receive(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: nack}}); err != nil {
				t.Fatal(err)
			}
			return received(t, e, proto.CloneOf(nack))
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, _ := direct(t, HookConfig{})
			e.Ask(crowd(1).question("s"))
			got := tell(e).Fault
			if got == nil || len(got.Error()) > maxExcerptBytes+200 || !strings.Contains(got.Error(), `"ä [31m  éé`) {
				t.Errorf("got an error of %d bytes: %.500v", len(fmt.Sprint(got)), got)
			}
		})
	}
}

// TestCachesOfTheDriverCount keeps the caches of a hook's driver within the limit of the state.
func TestCachesOfTheDriverCount(t *testing.T) {
	const each, limit = 20_000, 100_000
	e, h := direct(t, HookConfig{})
	h.state.limit = limit
	for n := range 20 {
		s := &state{controller: &thing{name: "c"}, parent: &thing{name: fmt.Sprint(n)}}
		for round := range 2 { // the second response replaces the cache of the first one
			e.Ask(s.question(fmt.Sprint(n)))
			exchangeBy(t, e, h, func(w *Work) {
				if known := w.CacheBytes > 0; known != (round > 0) || (w.Cache != nil) != known {
					t.Errorf("parent %d, response %d: the cache is %v, of %d bytes", n, round, w.Cache, w.CacheBytes)
				}
				w.Cache, w.CacheBytes = n, each
				h.Answer(w, answerTo(w.Request.(*compositev1.SyncRequest)))
			})
		}
		if held := len(h.state.subjects); h.state.bytes > limit || h.state.bytes < held*each || held < min(n+1, 4) {
			t.Fatalf("after %d parents, %d are held, and count %d bytes, of %d at most", n+1, held, h.state.bytes, limit)
		}
	}
	for name := range h.state.subjects {
		h.state.forget(name)
	}
	if h.state.bytes != 0 {
		t.Errorf("%d bytes are counted for nobody", h.state.bytes)
	}
}
