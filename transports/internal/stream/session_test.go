package stream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// pooled returns a session in a pool, and its hook.
func pooled(id string) (*Session, Hook) {
	p := NewPool(clock.RealClock{}, nil)
	s := New(settingsOf(id, func() { p.Changed() }))
	p.Add(s)
	return s, Hook{Pool: p, Name: "sync test", Timeout: time.Minute}
}

// TestSessionOutlivesItsStream loses a stream before the answer. The question is repeated on the
// next stream, and messages of the old one are ignored.
func TestSessionOutlivesItsStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		old := connectUntilEnd(t, s).greet("one")
		got := askAsync(t, h, "web")
		call := old.receiveCall()
		old.cancelRun(errors.New("the network is gone"))
		old.awaitEnd()
		next := connect(t, s).greet("one")
		old.answer(call, "late") // the old stream's receiver is still waiting
		next.answer(next.receiveCall(), "in time")
		if text := (<-got).text(); text != `"in time"` {
			t.Errorf("got %s, want the answer of the second stream", text)
		}
	})
}

// cancelRun ends a run without closing its connection, so that its receiver continues.
func (p *peer) cancelRun(cause error) {
	p.mu.Lock()
	r := p.run
	p.mu.Unlock()
	r.cancel(cause)
}

// TestEndSendsTheReason ends a stream: the hook receives the reason first.
func TestEndSendsTheReason(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		p := connect(t, s).greet("one")
		go p.End(status.New(codes.PermissionDenied, "the right was taken away"))
		f := p.receive().GetGoAway().GetStatus()
		if f.GetMessage() != "the right was taken away" || codes.Code(f.GetCode()) != codes.PermissionDenied {
			t.Errorf("the hook is told %v", f)
		}
		if end := p.awaitEnd(); end.Code() != codes.PermissionDenied {
			t.Errorf("the run ended with %v", end)
		}
		s.End(status.New(codes.Aborted, "nobody hears this")) // without a stream
	})
}

// TestStreamsThatEnd after silence or a violation of the protocol.
func TestStreamsThatEnd(t *testing.T) {
	cases := map[string]struct {
		do   func(*peer)
		code codes.Code
		says string
	}{
		"no Welcome": {func(p *peer) { p.receive(); p.receive() }, codes.DeadlineExceeded, "has not said Welcome within 10s"},
		"a hook that does not read": {
			func(p *peer) {
				synctest.Wait() // until the stream runs
				go p.End(status.New(codes.Aborted, "enough"))
			}, codes.Aborted, "enough",
		},
		"an unknown version": {
			func(p *peer) {
				p.receive()
				p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{Version: 9}}})
				p.receive()
			}, codes.InvalidArgument, "chose version 9",
		},
		"a long build": {
			func(p *peer) {
				p.receive()
				go p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
					Version: 1, BuildId: strings.Repeat("b", 257), Window: &streamv1.Window{Calls: 1, Bytes: 1},
				}}})
				if f := p.receive().GetGoAway().GetStatus(); f.GetCode() != int32(codes.InvalidArgument) {
					p.Errorf("the hook is told %v", f)
				}
				if p.Build() != "" || p.Welcomed() {
					p.Errorf("the session keeps %q", p.Build())
				}
			}, codes.InvalidArgument, "build_id has 257 bytes, expected at most 256",
		},
		"the end without a word": {
			func(p *peer) { p.greet("one").fail(io.EOF) },
			codes.Unavailable,
			"the hook has ended the stream",
		},
		"a failure": {
			func(p *peer) { p.greet("one").fail(status.Error(codes.Internal, "ouch")) },
			codes.Internal,
			"ouch",
		},
		"a drain": {
			func(p *peer) {
				p.greet("one").send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Drain{Drain: &streamv1.Drain{}}})
			}, codes.Unavailable, "a side wants no more questions",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := pooled("a")
				p := connect(t, s)
				c.do(p)
				if end := p.awaitEnd(); end.Code() != c.code || !strings.Contains(end.Message(), c.says) {
					t.Errorf("the stream ended with %v, want %s: %s", end, c.code, c.says)
				}
				if s.Open() {
					t.Error("the session is open without a stream")
				}
			})
		})
	}
}

// TestCallThatIsNeverAnswered fails at its deadline; the stream ends after cancelTimeout.
func TestCallThatIsNeverAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		p := connect(t, s).greet("one")
		got := askAsync(t, h, "web")
		call := p.receiveCall()
		if c := p.receive().GetCancel(); c.GetCallId() != call.GetId() {
			t.Errorf("the engine gives up call %d, want %d", c.GetCallId(), call.GetId())
		}
		if text := (<-got).text(); !strings.HasPrefix(text, "HookTimeout") {
			t.Errorf("got %s, want a timeout", text)
		}
		if !s.Open() {
			t.Error("the stream has ended at once")
		}
		if f := p.receive().GetGoAway().GetStatus(); !strings.Contains(f.GetMessage(), "not even CANCELLED") {
			t.Errorf("the hook is told %v", f)
		}
		if end := p.awaitEnd(); end.Code() != codes.DeadlineExceeded {
			t.Errorf("the stream ended with %v", end)
		}
	})
}

// TestCancelledCallThatIsAnswered keeps the stream.
func TestCancelledCallThatIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("a")
		p := connect(t, s).greet("one")
		askAsync(t, h, "web")
		call := p.receiveCall()
		p.receive() // Cancel
		p.answer(call, "too late")
		time.Sleep(2 * cancelTimeout)
		got := askAsync(t, h, "web")
		p.answer(p.receiveCall(), "well")
		if text := (<-got).text(); text != `"well"` {
			t.Errorf("got %s after an answer that came too late", text)
		}
	})
}

// TestUnreadTriggerAnswers are bounded.
func TestUnreadTriggerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		p := connect(t, s).greet("one")
		for id := range uint64(10 * maxUnread) {
			if !p.trigger(id) {
				p.endsUnread()
				return
			}
		}
		t.Errorf("%d triggers were taken, and not one answer read", 10*maxUnread)
	})
}

// TestRefusedTriggersWithinTheLimit keep the stream: a hook that asks for maxUnread syncs at the
// same time gets that many refusals.
func TestRefusedTriggersWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		s.SetHandlers(nil, func(*streamv1.Trigger) (int, error) {
			return RequestSync(func(hook.Trigger) (int, error) { return 0, hook.ErrTooManyTriggers }, hook.Trigger{})
		})
		p := connect(t, s).greet("one")
		for id := range uint64(maxUnread) {
			if !p.trigger(id) {
				t.Fatalf("after %d triggers the stream ended with %v", id, p.awaitEnd())
			}
		}
		for range maxUnread {
			if m := p.receive(); m.GetTriggerResult().GetError().GetCode() != int32(codes.ResourceExhausted) {
				t.Fatalf("got %v, want a refused trigger", m)
			}
		}
	})
}

// TestLargeUnreadTriggerAnswers are bounded by their sizes, too.
func TestLargeUnreadTriggerAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		s.SetHandlers(nil, func(*streamv1.Trigger) (int, error) {
			return 0, status.Error(codes.InvalidArgument, strings.Repeat("x", maxUnreadBytes/10))
		})
		p := connect(t, s).greet("one")
		for id := range uint64(20) {
			if !p.trigger(id) {
				p.endsUnread()
				return
			}
		}
		t.Errorf("%d bytes of answers wait, and not one is read", 2*maxUnreadBytes)
	})
}

// TestUnreadMessagesAreTheSessions counts what a hook does not read in the budget, and ends its
// stream if there is no memory for it.
func TestUnreadMessagesAreTheSessions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit = 6 * 200_000 // the share of sessions is 200,000
		settings := settingsOf("a", nil)
		settings.Memory = budget.New(limit)
		settings.Trigger = func(*streamv1.Trigger) (int, error) {
			return 0, status.Error(codes.InvalidArgument, strings.Repeat("x", 10_000))
		}
		s := New(settings)
		p := connect(t, s).greet("one")
		sessions := settings.Memory.Share(budget.Sessions)
		for sent := int64(1); p.trigger(1); sent++ {
			synctest.Wait()
			if used, want := sessions.Usage().Bytes, 10_000*sent; s.Open() && used < want {
				t.Fatalf("%d bytes count, want at least the %d that wait for the hook", used, want)
			}
		}
		p.endsUnread()
		if used := sessions.Usage().Bytes; used != 0 {
			t.Errorf("%d bytes count after the stream", used)
		}
	})
}

// TestTriggersWithoutAController are rejected one by one.
func TestTriggersWithoutAController(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		p := connect(t, s).greet("one")
		p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Trigger{Trigger: &streamv1.Trigger{Id: 7}}})
		if got := p.receive().GetTriggerResult(); got.GetId() != 7 || got.GetError().GetCode() != int32(codes.Unimplemented) {
			t.Errorf("the trigger is answered with %v", got)
		}
	})
}

// TestBrokenIsTheCause returns the hook's violation.
func TestBrokenIsTheCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := pooled("a")
		p := connect(t, s).greet("one")
		p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: &streamv1.Answer{CallId: 5}}})
		p.receive()
		var broken *session.ProtocolError
		if err := <-p.ended; !errors.As(err, &broken) || status.Code(err) != codes.InvalidArgument {
			t.Errorf("the run ended with %v (%T)", err, err)
		}
	})
}

// TestPickingASession does not wait for a session that decodes a large message.
func TestPickingASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, h := pooled("busy")
		connect(t, s).greet("one")
		s.mu.Lock() // as during the decoding of a message
		defer s.mu.Unlock()
		if found, _, _ := h.Pool.pick("web"); found != s || !s.Open() || s.Build() != "one" {
			t.Errorf("found %v of the build %q", found, s.Build())
		}
	})
}
