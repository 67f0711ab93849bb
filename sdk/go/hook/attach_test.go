package hook_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"github.com/hookloop/hookloop/sdk/go/hook"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// gateway passes each stream to the test, after its first message.
type gateway struct {
	streamv1.UnimplementedGatewayServiceServer
	streams chan *attached
}

// attached is a stream of a hook that dialled in.
type attached struct {
	stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]
	wish   *streamv1.Attach
	end    chan error
}

func (g *gateway) Attach(stream grpc.BidiStreamingServer[streamv1.HookMessage, streamv1.EngineMessage]) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	a := &attached{stream, m.GetAttach(), make(chan error, 1)}
	select {
	case g.streams <- a:
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
	select {
	case err := <-a.end:
		return err
	case <-stream.Context().Done():
		return stream.Context().Err()
	}
}

// openGateway serves a gateway until the test ends, and returns the options for dialling in.
func openGateway(t *testing.T) (*gateway, hook.Gateway) {
	t.Helper()
	authority := tlstest.NewAuthority(t)
	certificate, key := authority.Issue("gateway")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(
		grpc.Creds(credentials.NewServerTLSFromCert(&pair)),
	)
	g := &gateway{
		streams: make(chan *attached),
	}
	streamv1.RegisterGatewayServiceServer(server, g)
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, authority.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return g, hook.Gateway{Address: grpctest.Serve(t, server), CAFile: ca}
}

// attach dials in until the test ends.
func attach(t *testing.T, o hook.AttachOptions, h hook.Hook) {
	t.Helper()
	o.Worker = "hello"
	o.GracePeriod = 100 * time.Millisecond // the gateway here ends no stream that drains
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- hook.Attach(ctx, o, h) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// next returns the next stream. It comes immediately, not after half a minute.
func (g *gateway) next(t *testing.T) *attached {
	t.Helper()
	select {
	case a := <-g.streams:
		return a
	case <-time.After(time.Minute):
		t.Fatal("the hook does not dial in")
		return nil
	}
}

// open opens a session on a stream.
func (a *attached) open(t *testing.T, engine *session.Engine[*thing]) {
	t.Helper()
	engine.Connect()
	a.send(t, engine)
	a.hear(t, engine)
}

func (a *attached) send(t *testing.T, engine *session.Engine[*thing]) {
	t.Helper()
	for _, m := range engine.Outbox() {
		if err := a.stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
}

func (a *attached) hear(t *testing.T, engine *session.Engine[*thing]) session.EngineReceived {
	t.Helper()
	m, err := a.stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	news, err := engine.Receive(m)
	if err != nil {
		t.Fatalf("%v: %v", m, err)
	}
	return news
}

// TestTriggersWaitForTheSession sends no trigger before the session is open, and one from within
// Attached, which is called then.
func TestTriggersWaitForTheSession(t *testing.T) {
	g, at := openGateway(t)
	triggers := &hook.Triggers{}
	sent := make(chan int, 1)
	attach(t, hook.AttachOptions{Gateway: at, Options: hook.Options{Triggers: triggers}, Attached: func() {
		n, err := triggers.Send(t.Context(), hook.Trigger{Reason: "hello"})
		if err != nil {
			t.Errorf("within Attached: %v", err)
		}
		sent <- n
	}}, hook.Composite{})
	a := g.next(t)
	if _, err := triggers.Send(t.Context(), hook.Trigger{}); !errors.Is(err, hook.ErrNoStream) {
		t.Errorf("before the session: got %v, want ErrNoStream", err)
	}
	engine := newEngine("a")
	a.open(t, engine)
	engine.AnswerTrigger(&streamv1.TriggerResult{Id: a.hear(t, engine).Trigger.GetId(), Parents: 3})
	a.send(t, engine)
	if n := <-sent; n != 3 {
		t.Errorf("got %d parents, want 3", n)
	}
}

// TestATokenThatExpires ends an open stream. The hook dials in again immediately, with its
// session's id.
func TestATokenThatExpires(t *testing.T) {
	g, at := openGateway(t)
	o := hook.AttachOptions{Gateway: at}
	o.Hurry()
	attach(t, o, hook.Composite{})
	for _, code := range []codes.Code{codes.Unauthenticated, codes.InvalidArgument, codes.FailedPrecondition} {
		a := g.next(t)
		a.open(t, newEngine(code.String()))
		a.end <- status.Error(code, "the token has expired")
		back := g.next(t)
		if id := back.wish.GetSessionId(); id != code.String() {
			t.Errorf("after %s the session is %q, want %q", code, id, code)
		}
		back.end <- status.Error(codes.Unavailable, "later")
	}
}

// TestTheBackoffStartsAgain after a session that has lasted or had a call, not after one that the
// engine ends right after its Hello: such a hook would reconnect several times a second for ever.
func TestTheBackoffStartsAgain(t *testing.T) {
	for name, c := range map[string]struct {
		stable time.Duration
		calls  bool
		want   []time.Duration // without jitter
	}{
		"sessions that end soon": {hook.StableAfter, false, []time.Duration{400, 800, 1600, 3200, 6400, 10000, 10000}},
		"sessions with a call":   {hook.StableAfter, true, []time.Duration{200, 200, 200}},
		"sessions that last":     {0, false, []time.Duration{200, 200, 200}},
	} {
		t.Run(name, func(t *testing.T) {
			g, at := openGateway(t)
			pauses := make(chan time.Duration)
			o := hook.AttachOptions{Gateway: at, Options: hook.Options{Log: slog.New(slog.DiscardHandler)}}
			o.RecordPauses(c.stable, pauses)
			attach(t, o, hook.Composite{})
			for n, want := range c.want {
				a := g.next(t)
				engine := newEngine(fmt.Sprint(n))
				a.open(t, engine)
				if c.calls {
					engine.Ask(questionAbout("one"))
					a.send(t, engine)
					a.hear(t, engine)
				}
				a.end <- status.Error(codes.ResourceExhausted, "too many sessions")
				want *= time.Millisecond
				if got := <-pauses; got < want/2 || got >= want+want/2 {
					t.Errorf("the pause after stream %d is %s, want %s with jitter", n, got, want)
				}
			}
		})
	}
}

// TestAFunctionThatIgnoresItsContext delays neither the next stream nor, beyond the grace period,
// the end.
func TestAFunctionThatIgnoresItsContext(t *testing.T) {
	g, at := openGateway(t)
	began := make(chan struct{})
	release := make(chan struct{})
	attach(
		t,
		hook.AttachOptions{Gateway: at},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			close(began)
			<-release
			return &hook.SyncResponse{}, nil
		}},
	)
	a := g.next(t)
	engine := newEngine("a")
	a.open(t, engine)
	engine.Ask(questionAbout("one"))
	a.send(t, engine)
	<-began
	a.end <- status.Error(codes.Unavailable, "the network is gone")
	back := g.next(t)
	engine.Disconnect()
	back.open(t, engine)
	if c := engine.Counts(); c.Resumed != 1 {
		t.Errorf("the hook holds %d subjects, want the one", c.Resumed)
	}
	close(release)
}

// TestDialingWaitsNoLongerThanSaid dials a gateway that accepts no connection for a long time. The
// library's backoff, which grows to two minutes, does not delay the attempts.
func TestDialingWaitsNoLongerThanSaid(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	attempts := make(chan struct{})
	go func() {
		defer close(attempts)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return // the test is over
			}
			_ = conn.Close()
			attempts <- struct{}{}
		}
	}()
	o := hook.AttachOptions{
		Options: hook.Options{Log: slog.New(slog.DiscardHandler)},
		Gateway: hook.Gateway{Address: listener.Addr().String()},
	}
	o.Hurry()
	attach(t, o, hook.Composite{})
	late := time.After(30 * time.Second)
	for n := range 30 {
		select {
		case <-attempts:
		case <-late:
			t.Fatalf("after %d attempts the hook waits", n)
		}
	}
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for range attempts {
	}
}

// TestTriggersOfSeveralStreams reach the stream of the named controller, and the others reject
// them.
func TestTriggersOfSeveralStreams(t *testing.T) {
	triggers := &hook.Triggers{}
	connection, _ := start(t, hook.ServeOptions{Options: hook.Options{Triggers: triggers}}, hook.Composite{})
	refuses := newEngine("a")
	takes := newEngine("b")
	streams := map[*session.Engine[*thing]]*engineEnd{
		refuses: hello(t, connection, refuses),
		takes:   hello(t, connection, takes),
	}
	for engine, e := range streams { // after a question and its answer, the session is complete
		engine.Ask(questionAbout("one"))
		e.send()
		if m, err := e.stream.Recv(); err != nil {
			t.Fatal(err)
		} else if _, err := engine.Receive(m); err != nil {
			t.Fatal(err)
		}
	}
	answer := func(engine *session.Engine[*thing], refusal *statuspb.Status) {
		m, err := streams[engine].stream.Recv()
		if err != nil {
			t.Error(err)
			return
		}
		engine.AnswerTrigger(&streamv1.TriggerResult{Id: m.GetTrigger().GetId(), Parents: 2, Error: refusal})
		streams[engine].send()
	}
	refusal := &statuspb.Status{Code: int32(codes.InvalidArgument), Message: "controller_name is another's"}
	noCode := &statuspb.Status{Message: "a refusal without a code"}
	for _, c := range []struct {
		first, other *statuspb.Status
		parents      int
		code         codes.Code
	}{
		{refusal, nil, 2, codes.OK},
		{refusal, refusal, 0, codes.InvalidArgument},
		{noCode, noCode, 0, codes.Internal},
	} {
		go answer(refuses, c.first)
		go answer(takes, c.other)
		n, err := triggers.Send(t.Context(), hook.Trigger{ControllerName: "web"})
		if n != c.parents || status.Code(err) != c.code {
			t.Errorf("got %d parents, %v; want %d, %s", n, err, c.parents, c.code)
		}
	}
}

// TestTriggerWithInvalidText sends the reason with a replacement, and rejects names that protobuf
// cannot encode; either would end the stream.
func TestTriggerWithInvalidText(t *testing.T) {
	g, at := openGateway(t)
	triggers := &hook.Triggers{}
	attach(t, hook.AttachOptions{Gateway: at, Options: hook.Options{Triggers: triggers}}, hook.Composite{})
	a := g.next(t)
	engine := newEngine("a")
	a.open(t, engine)
	for name, trigger := range map[string]hook.Trigger{
		"Parents[1]":     {Parents: []hook.ParentName{{Name: "a"}, {Name: "\xff"}}},
		"ControllerName": {ControllerName: "\xff"},
		"ControllerKind": {ControllerKind: "\xff"},
		"LabelSelector":  {LabelSelector: "\xff"},
	} {
		_, err := triggers.Send(t.Context(), trigger)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want INVALID_ARGUMENT that names it", name, err)
		}
		if _, err := at.Trigger(t.Context(), "hello", trigger); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s, through the gateway: got %v, want INVALID_ARGUMENT", name, err)
		}
	}
	sent := make(chan error, 1)
	go func() {
		_, err := triggers.Send(t.Context(), hook.Trigger{Reason: "caf\xff"})
		sent <- err
	}()
	got := a.hear(t, engine).Trigger
	if got.GetReason() != "caf\uFFFD" {
		t.Errorf("the reason is %q", got.GetReason())
	}
	engine.AnswerTrigger(&streamv1.TriggerResult{Id: got.GetId(), Parents: 1})
	a.send(t, engine)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}
