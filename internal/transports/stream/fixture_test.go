package stream

import (
	"context"
	"fmt"
	"io"
	"testing"
	"testing/synctest"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// line is a connection whose other end the test speaks.
type line struct {
	heard  chan *streamv1.EngineMessage // what the engine sends
	spoken chan any                     // *streamv1.HookMessage, or the error that ends the line
	gone   <-chan struct{}
}

// Send waits until the test listens.
func (l *line) Send(m *streamv1.EngineMessage) error {
	select {
	case l.heard <- m:
		return nil
	case <-l.gone:
		return io.ErrClosedPipe
	}
}

// Recv waits until the test speaks.
func (l *line) Recv() (*streamv1.HookMessage, error) {
	select {
	case s := <-l.spoken:
		if err, ok := s.(error); ok {
			return nil, err
		}
		return s.(*streamv1.HookMessage), nil
	case <-l.gone:
		return nil, io.ErrClosedPipe
	}
}

// peer is the hook's end of a session, in the test's hands. It lives in a bubble of synctest, as
// everything here, where waiting takes no time.
type peer struct {
	*testing.T
	*Session
	line  *line
	ended chan error
}

// settingsOf are a session's under a name.
func settingsOf(id string, changed func()) Settings {
	return Settings{ID: id, Clock: clock.RealClock{}, Changed: changed}
}

// connect runs a session over a new line, which is gone after the run, or when the test ends.
func connect(t *testing.T, s *Session) *peer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	return over(ctx, t, s, cancel)
}

// lasting runs a session over a new line that is there until the test ends.
func lasting(t *testing.T, s *Session) *peer {
	t.Helper()
	return over(t.Context(), t, s, func() {})
}

func over(ctx context.Context, t *testing.T, s *Session, after func()) *peer {
	p := &peer{
		T:       t,
		Session: s,
		line:    &line{heard: make(chan *streamv1.EngineMessage), spoken: make(chan any), gone: ctx.Done()},
		ended:   make(chan error, 1),
	}
	go func() {
		defer after()
		p.ended <- s.Run(ctx, p.line)
	}()
	return p
}

// greet has the session open, by a hook of a build that takes ten calls at a time.
func (p *peer) greet(build string) *peer {
	p.Helper()
	if p.hear().GetHello() == nil {
		p.Fatal("the engine's first message is no Hello")
	}
	p.say(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
		Version: 1, BuildId: build, Window: &streamv1.Window{Calls: 10, Bytes: 1 << 20},
		Capabilities: []streamv1.Capability{
			streamv1.Capability_CAPABILITY_CHANGES, streamv1.Capability_CAPABILITY_FRAGMENTS, streamv1.Capability_CAPABILITY_RESUME,
		},
	}}})
	synctest.Wait()
	return p
}

func (p *peer) hear() *streamv1.EngineMessage {
	p.Helper()
	select {
	case m := <-p.line.heard:
		return m
	case <-p.line.gone:
		p.Fatalf("the line is gone: %v", <-p.ended)
		return nil
	}
}

// hearCall waits for a call.
func (p *peer) hearCall() *streamv1.Call {
	p.Helper()
	m := p.hear()
	if m.GetCall() == nil {
		p.Fatalf("the engine says %v, want a call", m)
	}
	return m.GetCall()
}

func (p *peer) say(m *streamv1.HookMessage) { p.line.spoken <- m }

// fail ends the line.
func (p *peer) fail(err error) { p.line.spoken <- err }

// answer answers a call with no children, and a status.
func (p *peer) answer(c *streamv1.Call, said string) {
	p.Helper()
	response, err := proto.Marshal(&compositev1.SyncResponse{Status: fmt.Appendf(nil, "%q", said)})
	if err != nil {
		p.Fatal(err)
	}
	p.say(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: &streamv1.Answer{
		CallId:  c.GetId(),
		Outcome: &streamv1.Answer_Desired{Desired: &streamv1.Desired{Envelope: response, Digest: make([]byte, 16)}},
	}}})
}

// awaitEnd gives the cause of a run's end.
func (p *peer) awaitEnd() *status.Status { return status.Convert(<-p.ended) }

// questionAbout is a sync of the parent with a name.
func questionAbout(t *testing.T, name string) *hook.Question {
	t.Helper()
	o, err := object.Decode(
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"uid":%q}}`, name, name))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o}
}

// reply is what became of a question.
type reply struct {
	*hook.Answer
	err error
}

// text is the answer's status, or the failure's kind and text.
func (r reply) text() string {
	if r.err != nil {
		return fmt.Sprintf("%s: %v", hook.KindOf(r.err), r.err)
	}
	return string(r.Status)
}

// begin asks without waiting for the answer.
func begin(t *testing.T, h hook.Hook, parent string) <-chan reply {
	t.Helper()
	q, out := questionAbout(t, parent), make(chan reply, 1)
	go func() {
		a, err := h.Ask(t.Context(), q)
		out <- reply{a, err}
	}()
	return out
}
