package gateway

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// resumes sets the ID of the session to resume.
func resumes(attach *streamv1.Attach, id string) *streamv1.Attach {
	attach.SessionId = id
	return attach
}

// attachOnce dials in, leaves and returns the session's ID.
func (h *testGateway) attachOnce(user string, attach *streamv1.Attach) string {
	g := h.attach(user, attach)
	g.leave()
	g.end()
	synctest.Wait()
	return g.session
}

// idleCount returns the number of sessions without a stream.
func (h *testGateway) idleCount() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.idle)
}

// attachSilent dials in, opens a session and then reads nothing, like a laptop after a change of
// its network.
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

// TestResumeOfASessionInUse gives the session to the stream that was opened last, because the other
// one may be dead.
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

// TestHalfOpenStream does not delay the hook that reconnects, and gets no further questions.
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
		// in the bubble's time
		if took := time.Since(began); second.session != first.session || took > 2*time.Second {
			t.Errorf("after %s the second stream has the session %q, want %q at once", took, second.session, first.session)
		}
	})
}

// TestResumeWhereAllIsFull ends the hook's own stream before it checks the limit.
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

// TestSessionsOfOneOwner keeps at most maxIdlePerOwner idle sessions of an owner.
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

// TestSessionsOfOneUser evicts no session of another user.
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

// TestSessionsExpire closes idle sessions after idleTimeout, and not before.
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

// TestSessionThatNeverOpened keeps no session without a handshake.
func TestSessionThatNeverOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		g := h.dial("laptop")
		g.send(attaching(serves("hello")))
		synctest.Wait()
		g.leave()
		g.end()
		synctest.Wait()
		if h.idleCount() > 0 || len(h.attached) > 0 {
			t.Errorf("%d sessions are kept and %d attached, want none", h.idleCount(), len(h.attached))
		}
	})
}

// TestStreamsOfACaller bounds the open streams of a caller. Ended ones do not count.
func TestStreamsOfACaller(t *testing.T) {
	g := New(Config{Clock: clock.RealClock{}})
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

// TestCachesAreCounted has a worker and an intercept that answers for one of two parents.
func TestCachesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		opened := h.open(settingsOf("web", make(chan hook.Trigger, 10)), "", answering("own"))
		h.attach("laptop", intercepting("blue"))
		h.attach("pod", serves("hello"))
		for _, parent := range []string{"blue", "red"} {
			h.answerOf(opened, parent)
		}
		if parents, arrivals := h.InterceptedParents(), h.CachedArrivals(); parents != 1 || arrivals != 2 {
			t.Errorf("%d parents and %d arrivals are counted, want 1 and 2", parents, arrivals)
		}
	})
}

// TestSessionsHaveMemoryOfTheProcess releases the memory of idle sessions when they expire.
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
