package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// resumes is a attach for a session that was had before.
func resumes(attach *streamv1.Attach, id string) *streamv1.Attach {
	attach.SessionId = id
	return attach
}

// come dials in, goes again, and gives the session.
func (h *testGateway) attachOnce(user string, attach *streamv1.Attach) string {
	g := h.attach(user, attach)
	g.leave()
	g.end()
	synctest.Wait()
	return g.session
}

// keeps is how many sessions there are without a stream.
func (h *testGateway) idleCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// deafen dials in and opens a session, and reads nothing from then on, as a laptop does whose
// network has changed.
func (h *testGateway) attachSilent(user string, attach *streamv1.Attach) *testHook {
	g := h.dial(user)
	g.send(attaching(attach))
	g.session = (<-g.toHook).GetHello().GetSessionId()
	g.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
		Version: 1, BuildId: user, Window: &streamv1.Window{Calls: 10, Bytes: 1 << 20},
	}}})
	synctest.Wait()
	return g
}

// TestResumeOfASessionInUse gives it to the stream that the hook has opened last, since the other
// may be one that nobody knows to be dead.
func TestResumeOfASessionInUse(t *testing.T) {
	for name, attach := range map[string]func() *streamv1.Attach{
		"a worker":     func() *streamv1.Attach { return serves("hello") },
		"an intercept": func() *streamv1.Attach { return intercepting("blue") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newTestGateway(t)
				h.open(settingsOf("web", nil), "", answering("own"))
				first := h.attach("laptop", attach())
				second := h.attach("laptop", resumes(attach(), first.session))
				if second.session != first.session {
					t.Errorf("the second stream has the session %q, want %q", second.session, first.session)
				}
				if end := first.end(); end.Code() != codes.Aborted || !strings.Contains(end.Message(), "on another stream") {
					t.Errorf("the first stream ends with %v", end)
				}
			})
		})
	}
}

// TestHalfOpenStream does not hold up the hook that has come back, and gets no questions then.
func TestHalfOpenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		opened := h.open(settingsOf("web", nil), "hello", nil)
		first := h.attachSilent("laptop", serves("hello"))
		began := time.Now()
		second := h.attach("laptop", resumes(serves("hello"), first.session))
		for i := range 8 {
			if got := h.answerOf(opened, fmt.Sprint("parent-", i)); got != `"laptop"` {
				t.Errorf("question %d: got %s", i, got)
			}
		}
		// by the bubble's clock
		if took := time.Since(began); second.session != first.session || took > 2*time.Second {
			t.Errorf("after %s the second stream has the session %q, want %q at once", took, second.session, first.session)
		}
	})
}

// TestResumeWhereAllIsFull ends the hook's own stream before its room is looked for.
func TestResumeWhereAllIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		var last *testHook
		for i := range maxSessions {
			last = h.attach(fmt.Sprintf("laptop-%d", i), serves("hello"))
		}
		back := h.attach(fmt.Sprintf("laptop-%d", maxSessions-1), resumes(serves("hello"), last.session))
		if back.session != last.session {
			t.Errorf("the hook that comes back gets the session %q, want %q", back.session, last.session)
		}
	})
}

// TestSessionsOfOneOwner are kept for it as long as there are not many.
func TestSessionsOfOneOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		first := h.attachOnce("laptop", serves("hello"))
		for range maxIdlePerOwner {
			h.attachOnce("laptop", serves("hello"))
		}
		if h.idleCount() != maxIdlePerOwner {
			t.Errorf("%d sessions are kept, want %d", h.idleCount(), maxIdlePerOwner)
		}
		if got := h.attachOnce("laptop", resumes(serves("hello"), first)); got == first {
			t.Error("the oldest session is still there")
		}
	})
}

// TestSessionsOfOneUser push out nobody else's.
func TestSessionsOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		first := h.attachOnce("laptop", serves("hello"))
		for i := range maxIdle + 10 {
			h.attachOnce("greedy", serves(fmt.Sprintf("worker-%d", i)))
		}
		if got := h.attachOnce("laptop", resumes(serves("hello"), first)); got != first || h.idleCount() != maxIdle {
			t.Errorf("got session %q with %d kept, want %q and %d", got, h.idleCount(), first, maxIdle)
		}
	})
}

// TestSessionsExpire when nobody comes back, and not before.
func TestSessionsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		first := h.attachOnce("laptop", serves("hello"))
		time.Sleep(idleTimeout - time.Second)
		if got := h.attachOnce("laptop", resumes(serves("hello"), first)); got != first {
			t.Errorf("got session %q, want %q", got, first)
		}
		time.Sleep(idleTimeout - time.Second)
		if h.idleCount() != 1 {
			t.Errorf("%d sessions are kept, want the one that was used again", h.idleCount())
		}
		time.Sleep(2 * time.Second)
		if h.idleCount() != 0 {
			t.Errorf("%d sessions are kept, want none", h.idleCount())
		}
	})
}

// TestSessionThatNeverOpened is not kept.
func TestSessionThatNeverOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		g := h.dial("laptop")
		g.send(attaching(serves("hello")))
		synctest.Wait()
		g.leave()
		g.end()
		if synctest.Wait(); h.idleCount() > 0 || len(h.attached) > 0 {
			t.Errorf("%d sessions are kept and %d attached, want none", h.idleCount(), len(h.attached))
		}
	})
}

// TestStreamsOfACaller are bounded, and ended ones do not count.
func TestStreamsOfACaller(t *testing.T) {
	g := New(Settings{Clock: clock.RealClock{}})
	for range maxStreamsPerUser {
		if err := g.addStream("one"); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.addStream("one"); status.Code(err) != codes.ResourceExhausted ||
		!strings.Contains(err.Error(), `User "one" has 128 streams`) {
		t.Errorf("%v, expected RESOURCE_EXHAUSTED", err)
	}
	if err := g.addStream("other"); err != nil {
		t.Error(err)
	}
	g.removeStream("one")
	if err := g.addStream("one"); err != nil {
		t.Error(err)
	}
	for i := range maxStreams {
		if err := g.addStream(fmt.Sprint("user-", i)); (err != nil) != (i >= maxStreams-maxStreamsPerUser-1) {
			t.Fatalf("stream %d: %v", i, err)
		}
	}
}

// TestSessionsHaveMemoryOfTheProcess has sessions that are kept give their memory back in the end.
func TestSessionsHaveMemoryOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		memory := budget.New(1 << 30)
		h.settings.Memory = memory
		used := func() (bytes int64) {
			for _, u := range memory.Usage() {
				bytes += u.Bytes
			}
			return bytes
		}
		opened := h.open(settingsOf("web", nil), "hello", nil)
		g := h.attach("laptop", &streamv1.Attach{Worker: "hello"})
		h.answerOf(opened, "a")
		if used() == 0 {
			t.Error("a session with a parent takes no memory")
		}
		g.leave()
		synctest.Wait()
		if used() == 0 {
			t.Error("a session that is kept takes no memory")
		}
		time.Sleep(idleTimeout)
		synctest.Wait()
		if n := used(); n != 0 {
			t.Errorf("%d bytes are in use when the session is forgotten", n)
		}
	})
}
