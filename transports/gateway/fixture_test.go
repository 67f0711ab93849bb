package gateway

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeGuard is a Guard that accepts every caller unless an error is set. Tests set it up before the
// first call.
type fakeGuard struct {
	unknown, forbidden error
	unanswered         func(user string) bool  // reports whether Allow waits for the end of the call; may be nil
	revoke             context.CancelCauseFunc // revokes the right of the last caller

	mu       sync.Mutex // guards the fields below
	rights   []auth.Right
	admitted map[string]bool
}

var _ Guard = (*fakeGuard)(nil)

type userKey struct{}

func (p *fakeGuard) Authenticate(ctx context.Context) (*auth.Caller, error) {
	name, _ := ctx.Value(userKey{}).(string)
	return &auth.Caller{Name: name}, p.unknown
}

func (p *fakeGuard) Allow(ctx context.Context, caller *auth.Caller, right auth.Right) error {
	if p.unanswered != nil && p.unanswered(caller.Name) {
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rights = append(p.rights, right)
	p.admitted[caller.Name] = p.forbidden == nil
	return p.forbidden
}

func (p *fakeGuard) Admitted(caller *auth.Caller) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.admitted[caller.Name]
}

func (p *fakeGuard) Recheck(
	ctx context.Context, _ *auth.Caller, _ ...auth.Right,
) (context.Context, context.CancelFunc) {
	kept, cancel := context.WithCancelCause(ctx)
	p.revoke = cancel
	return kept, func() { cancel(nil) }
}

// testGateway is a gateway for use in a bubble of synctest, which controls time.
type testGateway struct {
	*testing.T
	*Gateway
	guard *fakeGuard
}

func newTestGateway(t *testing.T) *testGateway {
	t.Helper()
	p := &fakeGuard{admitted: map[string]bool{}}
	return &testGateway{t, New(Config{Guard: p, Build: "test", Clock: clock.RealClock{}}), p}
}

// Trigger sends a request as a registered Gateway receives it.
func (h *testGateway) Trigger(ctx context.Context, r *streamv1.TriggerRequest) (*streamv1.TriggerResponse, error) {
	return h.serveTrigger(ctx, func(raw *codec.Raw) (err error) {
		raw.Data, err = proto.Marshal(r)
		return err
	})
}

// testStream is a test hook's stream, in memory.
type testStream struct {
	grpc.ServerStream
	ctx      context.Context //nolint:containedctx // a stream has one
	toHook   chan *streamv1.EngineMessage
	fromHook chan *streamv1.HookMessage
}

// Context returns the call's context.
func (l *testStream) Context() context.Context { return l.ctx }

// Send waits until the hook reads.
func (l *testStream) Send(m *streamv1.EngineMessage) error {
	select {
	case l.toHook <- m:
		return nil
	case <-l.ctx.Done():
		return io.ErrClosedPipe
	}
}

// Recv waits for a message of the hook.
func (l *testStream) Recv() (*streamv1.HookMessage, error) {
	select {
	case m := <-l.fromHook:
		return m, nil
	case <-l.ctx.Done():
		return nil, l.ctx.Err()
	}
}

// RecvMsg waits for a message of the hook and decodes it as gRPC's codec does.
func (l *testStream) RecvMsg(m any) error {
	got, err := l.Recv()
	if err != nil {
		return err
	}
	m.(*codec.Raw).Data, err = proto.Marshal(got)
	return err
}

// testHook is a hook that dials in.
type testHook struct {
	*testGateway
	*testStream
	leave   context.CancelFunc
	ended   chan error // result of the call
	session string     // the ID from the engine
	silent  bool       // does not answer
	calls   chan *session.Work
}

// dial starts a call without a first message.
func (h *testGateway) dial(user string) *testHook {
	ctx, cancel := context.WithCancel(context.WithValue(h.Context(), userKey{}, user))
	g := &testHook{testGateway: h, leave: cancel, ended: make(chan error, 1), calls: make(chan *session.Work, 10)}
	g.testStream = &testStream{
		ctx: ctx, toHook: make(chan *streamv1.EngineMessage), fromHook: make(chan *streamv1.HookMessage),
	}
	go func() {
		defer cancel() // as gRPC does when the handler returns
		g.ended <- h.Attach(g.testStream)
	}()
	return g
}

// attach dials in and answers questions: the status in each answer is the user's name.
func (h *testGateway) attach(user string, attach *streamv1.Attach) *testHook {
	return h.attachAs(user, user, attach)
}

func (h *testGateway) attachAs(user, build string, attach *streamv1.Attach) *testHook {
	g := h.dial(user)
	go g.serve(user, build, attach)
	synctest.Wait()
	return g
}

func (g *testHook) serve(user, build string, attach *streamv1.Attach) {
	if !g.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Attach{Attach: attach}}) {
		return
	}
	machine := session.NewHook(session.HookConfig{Build: build, State: func(id string) *session.State {
		g.session = id
		return session.NewState(0)
	}})
	for {
		select {
		case m := <-g.toHook:
			got, err := machine.Receive(m)
			if err != nil {
				g.Error(err)
				return
			}
			if got.Work != nil {
				g.calls <- got.Work
				if !g.silent {
					machine.Answer(got.Work, &compositev1.SyncResponse{Status: fmt.Appendf(nil, "%q", user)})
				}
			}
		case <-g.ctx.Done():
			return
		}
		for _, m := range machine.Outbox() {
			if !g.send(m) {
				return
			}
		}
	}
}

// send reports whether the engine still reads.
func (g *testHook) send(m *streamv1.HookMessage) bool {
	select {
	case g.fromHook <- m:
		return true
	case <-g.ctx.Done():
		return false
	}
}

// end returns the status that the hook receives.
func (g *testHook) end() *status.Status { return status.Convert(<-g.ended) }

// settingsOf returns the settings of a controller's sync hook. It sends the controller's triggers
// to the channel, which may be nil.
func settingsOf(controller string, triggers chan<- hook.Trigger) hook.Config {
	s := hook.Config{ControllerKind: "CompositeController", ControllerName: controller, Op: hook.Sync, Version: "v2"}
	if triggers != nil {
		s.Trigger = func(t hook.Trigger) (int, error) {
			triggers <- t
			return 3, nil
		}
	}
	return s
}

// open opens a controller's hook through the gateway, as the engine does: one that a worker serves,
// or own if it is not nil.
func (h *testGateway) open(s hook.Config, worker string, own hook.Hook) *hook.Opened {
	h.Helper()
	openers := h.Openers(hook.Openers{"grpc": func(s hook.Config) (*hook.Opened, error) {
		if own != nil {
			return &hook.Opened{Hook: own, Address: "own"}, nil
		}
		return h.Open(s, worker, "", time.Minute), nil
	}})
	opened, err := openers["grpc"](s)
	if err != nil {
		h.Fatal(err)
	}
	return opened
}

// answerOf sends a question about a parent. It returns the answer's status, or the error's kind and
// text.
func (h *testGateway) answerOf(to hook.Hook, parent string) string {
	h.Helper()
	answer, err := h.put(to, parent)
	if err != nil {
		return fmt.Sprintf("%s: %v", hook.ErrorKindOf(err), err)
	}
	return string(answer.Status)
}

// answer sends a question about a parent. It fails the test on an error.
func (h *testGateway) answer(to hook.Hook, parent string) *hook.Answer {
	h.Helper()
	answer, err := h.put(to, parent)
	if err != nil {
		h.Fatal(err)
	}
	return answer
}

// put sends a question about a parent. The parent's name is also its label team.
func (h *testGateway) put(to hook.Hook, parent string) (*hook.Answer, error) {
	h.Helper()
	o, err := object.Decode(fmt.Appendf(
		nil,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"uid":%q,"namespace":"shop","labels":{"team":%q}}}`,
		parent,
		parent,
		parent,
	))
	if err != nil {
		h.Fatal(err)
	}
	return to.Ask(h.Context(), &hook.Question{Kind: hook.Composite, Op: hook.Sync, Controller: o, Parent: o})
}

// answering returns a controller's own hook.
func answering(text string) hook.Hook {
	return hook.Func(func(context.Context, *hook.Question) (*hook.Answer, error) {
		return &hook.Answer{Status: fmt.Appendf(nil, "%q", text)}, nil
	})
}
