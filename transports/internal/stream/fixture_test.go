package stream

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeConn is a connection with the test as its other end.
type fakeConn struct {
	sent   chan *streamv1.EngineMessage // from the engine
	inbox  chan any                     // *streamv1.HookMessage, or an error that ends the connection
	closed <-chan struct{}
}

// Send waits until the test receives.
func (l *fakeConn) Send(m *streamv1.EngineMessage) error {
	select {
	case l.sent <- m:
		return nil
	case <-l.closed:
		return io.ErrClosedPipe
	}
}

// Recv waits until the test sends.
func (l *fakeConn) Recv() (*streamv1.HookMessage, error) {
	select {
	case s := <-l.inbox:
		if err, ok := s.(error); ok {
			return nil, err
		}
		return s.(*streamv1.HookMessage), nil
	case <-l.closed:
		return nil, io.ErrClosedPipe
	}
}

// peer is the hook's end of a session, in a bubble of synctest.
type peer struct {
	*testing.T
	*Session
	conn  *fakeConn
	ended chan error
}

// settingsOf returns a session's settings.
func settingsOf(id string, changed func()) Config {
	return Config{ID: id, Clock: clock.RealClock{}, Changed: changed}
}

// connect runs a session over a new connection, which closes after the run.
func connect(t *testing.T, s *Session) *peer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	return over(ctx, t, s, cancel)
}

// connectUntilEnd runs a session over a new connection, which stays open until the test ends.
func connectUntilEnd(t *testing.T, s *Session) *peer {
	t.Helper()
	return over(t.Context(), t, s, func() {})
}

func over(ctx context.Context, t *testing.T, s *Session, after func()) *peer {
	p := &peer{
		T:       t,
		Session: s,
		conn:    &fakeConn{sent: make(chan *streamv1.EngineMessage), inbox: make(chan any), closed: ctx.Done()},
		ended:   make(chan error, 1),
	}
	go func() {
		defer after()
		p.ended <- s.Run(ctx, p.conn)
	}()
	return p
}

// greet completes the handshake of a hook with a window of ten calls.
func (p *peer) greet(build string) *peer {
	p.Helper()
	if p.receive().GetHello() == nil {
		p.Fatal("the engine's first message is no Hello")
	}
	p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: &streamv1.Welcome{
		Version: 1, BuildId: build, Window: &streamv1.Window{Calls: 10, Bytes: 1 << 20},
		Capabilities: []streamv1.Capability{
			streamv1.Capability_CAPABILITY_CHANGES, streamv1.Capability_CAPABILITY_FRAGMENTS,
			streamv1.Capability_CAPABILITY_RESUME,
		},
	}}})
	synctest.Wait()
	return p
}

func (p *peer) receive() *streamv1.EngineMessage {
	p.Helper()
	select {
	case m := <-p.conn.sent:
		return m
	case <-p.conn.closed:
		p.Fatalf("the connection is closed: %v", <-p.ended)
		return nil
	}
}

// receiveCall waits for a call.
func (p *peer) receiveCall() *streamv1.Call {
	p.Helper()
	m := p.receive()
	if m.GetCall() == nil {
		p.Fatalf("the engine says %v, want a call", m)
	}
	return m.GetCall()
}

func (p *peer) send(m *streamv1.HookMessage) { p.conn.inbox <- m }

// trigger sends a trigger, and reports false if the stream has ended.
func (p *peer) trigger(id uint64) bool {
	select {
	case p.conn.inbox <- &streamv1.HookMessage{
		Message: &streamv1.HookMessage_Trigger{Trigger: &streamv1.Trigger{Id: id}},
	}:
		return true
	case <-p.conn.closed:
		return false
	}
}

// fail ends the connection.
func (p *peer) fail(err error) { p.conn.inbox <- err }

// answer answers a call with a status and without children.
func (p *peer) answer(c *streamv1.Call, text string) {
	p.Helper()
	response, err := proto.Marshal(&compositev1.SyncResponse{Status: fmt.Appendf(nil, "%q", text)})
	if err != nil {
		p.Fatal(err)
	}
	p.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: &streamv1.Answer{
		CallId:  c.GetId(),
		Outcome: &streamv1.Answer_Desired{Desired: &streamv1.Desired{Envelope: response, Digest: make([]byte, 16)}},
	}}})
}

// awaitEnd returns the cause of a run's end.
func (p *peer) awaitEnd() *status.Status { return status.Convert(<-p.ended) }

// endsUnread checks that the run ends because the hook does not read.
func (p *peer) endsUnread() {
	p.Helper()
	if end := p.awaitEnd(); end.Code() != codes.ResourceExhausted || !strings.Contains(end.Message(), "does not read") {
		p.Errorf("the stream ended with %v", end)
	}
}

// questionAbout returns a sync question about the named parent.
func questionAbout(t *testing.T, name string) *hook.Question {
	t.Helper()
	o, err := object.Decode(
		fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"uid":%q}}`, name, name))
	if err != nil {
		t.Fatal(err)
	}
	return &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o}
}

// reply is the result of a question.
type reply struct {
	*hook.Answer
	err error
}

// text returns the answer's status, or the error's kind and text.
func (r reply) text() string {
	if r.err != nil {
		return fmt.Sprintf("%s: %v", hook.ErrorKindOf(r.err), r.err)
	}
	return string(r.Status)
}

// askAsync asks without waiting for the answer.
func askAsync(t *testing.T, h hook.Hook, parent string) <-chan reply {
	t.Helper()
	q := questionAbout(t, parent)
	out := make(chan reply, 1)
	go func() {
		a, err := h.Ask(t.Context(), q)
		out <- reply{a, err}
	}()
	return out
}
