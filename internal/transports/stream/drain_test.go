package stream

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
)

// TestDrainEndsWithTheLastAnswer drains a session while a question is under way: the hook is told,
// the question is answered, and the stream ends with that. The next question is not put to it.
func TestDrainEndsWithTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		if s.Drain() {
			t.Error("a session without a stream is drained")
		}
		p := connect(t, s).greet("one")
		first := begin(t, h, "web")
		call := p.hearCall()
		if !s.Drain() {
			t.Error("there is no open stream to drain")
		}
		if m := p.hear(); m.GetDrain() == nil {
			t.Errorf("the hook is told %v, want a Drain", m)
		}
		if s.Open() {
			t.Error("questions may be asked still")
		}
		second := begin(t, h, "other")
		p.answer(call, "done")
		if text := (<-first).text(); text != `"done"` {
			t.Errorf("the question under way got %s", text)
		}
		if end := p.awaitEnd(); end.Code() != codes.Unavailable {
			t.Errorf("the run ended with %v", end)
		}
		next := connect(t, s).greet("two")
		next.answer(next.hearCall(), "elsewhere")
		if text := (<-second).text(); text != `"elsewhere"` {
			t.Errorf("the next question got %s", text)
		}
	})
}
