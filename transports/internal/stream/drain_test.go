package stream

import (
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/codes"
)

// TestDrainEndsWithTheLastAnswer drains a session during a question: the hook receives the drain,
// answers, and the stream ends. The next question goes elsewhere.
func TestDrainEndsWithTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		if s.Drain() {
			t.Error("a session without a stream is drained")
		}
		p := connect(t, s).greet("one")
		first := askAsync(t, h, "web")
		call := p.receiveCall()
		if !s.Drain() {
			t.Error("there is no open stream to drain")
		}
		if m := p.receive(); m.GetDrain() == nil {
			t.Errorf("the hook is told %v, want a Drain", m)
		}
		if s.Open() {
			t.Error("questions may still be asked")
		}
		second := askAsync(t, h, "other")
		p.answer(call, "done")
		if text := (<-first).text(); text != `"done"` {
			t.Errorf("the question under way got %s", text)
		}
		if end := p.awaitEnd(); end.Code() != codes.Unavailable {
			t.Errorf("the run ended with %v", end)
		}
		next := connect(t, s).greet("two")
		next.answer(next.receiveCall(), "elsewhere")
		if text := (<-second).text(); text != `"elsewhere"` {
			t.Errorf("the next question got %s", text)
		}
	})
}
