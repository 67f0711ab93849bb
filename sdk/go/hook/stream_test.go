package hook_test

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// thing is an object on the engine's side.
type thing struct{ name string }

func (t *thing) Namespace() string { return "" }
func (t *thing) Name() string      { return t.name }

// engineEnd is the engine's end of a stream.
type engineEnd struct {
	*testing.T
	*session.Engine[*thing]
	stream grpc.BidiStreamingClient[streamv1.EngineMessage, streamv1.HookMessage]
}

// hello opens a stream of a session.
func hello(t *testing.T, connection *grpc.ClientConn, engine *session.Engine[*thing]) *engineEnd {
	t.Helper()
	return helloIn(t.Context(), t, connection, engine)
}

func helloIn(
	ctx context.Context,
	t *testing.T,
	connection *grpc.ClientConn,
	engine *session.Engine[*thing],
) *engineEnd {
	t.Helper()
	stream, err := streamv1.NewHookStreamServiceClient(connection).Connect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	e := &engineEnd{t, engine, stream}
	engine.Connect()
	e.send()
	m, err := stream.Recv()
	if err == nil {
		_, err = engine.Receive(m)
	}
	if err != nil || !engine.Open() {
		t.Fatalf("the hook's first message is %v, %v; want a Welcome", m, err)
	}
	return e
}

// send sends the engine's messages.
func (e *engineEnd) send() {
	e.Helper()
	for _, m := range e.Outbox() {
		if err := e.stream.Send(m); err != nil {
			e.Fatal(err)
		}
	}
}

// questionAbout returns a sync of a parent.
func questionAbout(parent string) session.Question[*thing] {
	return session.Question[*thing]{
		Subject:  parent,
		Method:   compositev1.CompositeHookService_Sync_FullMethodName,
		Envelope: &compositev1.SyncRequest{},
		Slots: []session.Slot[*thing]{
			{
				Slot:    session.ControllerSlot,
				Objects: []*thing{{"controller"}},
			},
			{Slot: session.ParentSlot, Objects: []*thing{{parent}}},
		},
	}
}

// newEngine returns the engine's side of a session.
func newEngine(id string) *session.Engine[*thing] {
	return session.NewEngine(session.EngineConfig[*thing]{SessionID: id, Encode: func(o *thing) *hookv1.ObservedObject {
		return message("v1", "ConfigMap", "", o.name)
	}})
}

// TestSessionMovesToTheNewStream opens a session a second time while the first stream is open and
// busy for the hook, as after a network failure that only one side notices. The state moves to the
// second stream, and the first one ends.
func TestSessionMovesToTheNewStream(t *testing.T) {
	began := make(chan struct{}, 1)
	ended := make(chan struct{})
	connection, _ := start(
		t,
		hook.ServeOptions{},
		hook.Composite{Sync: func(ctx context.Context, _ *hook.SyncRequest) (*hook.SyncResponse, error) {
			began <- struct{}{}
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}},
	)
	engine := newEngine("a")
	first := hello(t, connection, engine)
	engine.Ask(questionAbout("one"))
	first.send()
	<-began
	engine.Disconnect()
	hello(t, connection, engine)
	if c := engine.Counts(); c.Resumed != 1 || c.Dropped != 0 {
		t.Errorf("on the second stream the hook holds %d subjects and lacks %d, want the one", c.Resumed, c.Dropped)
	}
	if _, err := first.stream.Recv(); status.Code(err) != codes.Aborted {
		t.Errorf("the first stream ends with %v, want ABORTED", err)
	}
	<-ended
}

// TestAnEngineOfAnotherVersionGetsUnimplemented makes the engine fall back to unary calls.
func TestAnEngineOfAnotherVersionGetsUnimplemented(t *testing.T) {
	connection, _ := start(t, hook.ServeOptions{}, hook.Composite{})
	stream, err := streamv1.NewHookStreamServiceClient(connection).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	greeting := &streamv1.EngineMessage{
		Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{Versions: []uint32{2, 3}}},
	}
	if err := stream.Send(greeting); err != nil {
		t.Fatal(err)
	}
	if m, err := stream.Recv(); status.Code(err) != codes.Unimplemented ||
		!strings.Contains(err.Error(), "versions [2 3]") {
		t.Errorf("got %v, %v; want UNIMPLEMENTED, and the versions", m, err)
	}
}

// TestTheWelcomeNamesTheFunctions lists the methods with a function, and no others.
func TestTheWelcomeNamesTheFunctions(t *testing.T) {
	connection, _ := start(
		t,
		hook.ServeOptions{},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) { return nil, nil }},
		hook.Decorator{
			Finalize: func(context.Context, *hook.SyncRequest) (*hook.DecorateResponse, error) { return nil, nil },
		},
	)
	stream, err := streamv1.NewHookStreamServiceClient(connection).Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(
		&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{Versions: []uint32{1}}}},
	); err != nil {
		t.Fatal(err)
	}
	m, err := stream.Recv()
	want := []string{compositev1.CompositeHookService_Sync_FullMethodName,
		decoratorv1.DecoratorHookService_Finalize_FullMethodName}
	if got := m.GetWelcome().GetMethods(); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}

// TestTheWindowBoundsWhatRuns cancels a thousand calls of a function that does not end with its
// context: the window bounds the running calls. The others are answered without a call of the
// function.
func TestTheWindowBoundsWhatRuns(t *testing.T) {
	const calls = 1000
	var running, most atomic.Int64
	release := make(chan struct{})
	connection, stop := start(
		t,
		hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.DiscardHandler), GracePeriod: 100 * time.Millisecond}},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			most.Store(max(most.Load(), running.Add(1)))
			<-release
			running.Add(-1)
			return &hook.SyncResponse{}, nil
		}},
	)
	engine := newEngine("a")
	e := hello(t, connection, engine)
	answered := 0
	for n := range calls {
		ticket := engine.Ask(questionAbout(fmt.Sprint(n)))
		e.send()
		if n < session.DefaultCalls { // each of these begins
			for running.Load() <= int64(n) {
				runtime.Gosched()
			}
		}
		engine.Cancel(ticket)
		e.send()
		m, err := e.stream.Recv()
		if err == nil {
			_, err = engine.Receive(m)
		}
		if code := m.GetAnswer().GetError().GetCode(); err != nil || code != int32(codes.Canceled) {
			t.Fatalf("call %d: got %v, %v; want CANCELLED", n, m, err)
		}
		answered++
	}
	close(release)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if answered != calls || most.Load() != session.DefaultCalls {
		t.Errorf("%d of %d calls are answered, and %d functions ran at a time; want %d", answered, calls,
			most.Load(), session.DefaultCalls)
	}
}

// TestStreamsThatBreakOff end during calls.
func TestStreamsThatBreakOff(t *testing.T) {
	connection, _ := start(
		t,
		hook.ServeOptions{},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			return &hook.SyncResponse{}, nil
		}},
	)
	for n := range 100 {
		engine := newEngine(fmt.Sprint(n))
		ctx, cancel := context.WithCancel(t.Context())
		e := helloIn(ctx, t, connection, engine)
		for i := range 40 {
			engine.Ask(questionAbout(fmt.Sprint(i)))
		}
		e.send()
		cancel()
	}
}
