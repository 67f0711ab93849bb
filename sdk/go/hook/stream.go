package hook

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"sync"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	"go.opentelemetry.io/otel/trace"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// conn is a bidirectional stream. Either side may have opened it.
type conn interface {
	Send(*streamv1.HookMessage) error
	Recv() (*streamv1.EngineMessage, error)
}

// streams answers calls that arrive over streams.
type streams struct {
	streamv1.UnimplementedHookStreamServiceServer
	methods  methods
	calls    callLog
	build    string
	log      *slog.Logger
	tracer   trace.Tracer
	sessions sessions
	// stopping is closed when the hook should accept no more calls.
	stopping <-chan struct{}
	triggers *triggers
	// running counts functions, which may run longer than their streams.
	running running
}

// Connect handles a stream that the engine opened.
func (s *streams) Connect(conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage]) error {
	return s.serve(conn.Context(), conn, nil, nil)
}

// serve answers calls until the stream ends. It calls opened when a session opens, and called
// whenever the engine calls a hook. Both may be nil.
func (s *streams) serve(ctx context.Context, conn conn, opened func(string), called func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	x := &exchange{
		streams: s,
		conn:    conn,
		opened:  opened,
		called:  called,
		end:     cancel,
		wake:    make(chan struct{}, 1),
		cancels: map[*session.Work]context.CancelCauseFunc{},
	}
	x.hook = session.NewHook(
		session.HookConfig{Build: s.build, Methods: s.methods.names(), State: func(id string) *session.State {
			x.id, x.state = id, s.sessions.take(id, x)
			return x.state.memory
		}},
	)
	go x.receive(ctx)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		x.send(ctx)
	}()
	select {
	case <-ctx.Done():
	case <-s.stopping:
		x.do(x.hook.Drain)
		<-ctx.Done()
	}
	<-sent
	if left := x.surrender(); left != nil {
		s.sessions.give(x.id, x, left)
	}
	s.triggers.leave(x)
	if err := context.Cause(ctx); !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// exchange handles one stream.
type exchange struct {
	*streams
	conn   conn
	opened func(string) // see serve
	called func()       // see serve
	end    context.CancelCauseFunc
	wake   chan struct{} // receives when there may be messages to send

	mu       sync.Mutex // guards the fields below
	hook     *session.Hook
	id       string
	state    *sessionState
	closed   bool // another stream uses the session, or the stream has ended
	cancels  map[*session.Work]context.CancelCauseFunc
	draining bool
}

// do runs change under the lock, then wakes the sender.
func (x *exchange) do(change func()) {
	x.mu.Lock()
	change()
	if x.state != nil {
		x.state.meter()
	}
	x.mu.Unlock()
	select {
	case x.wake <- struct{}{}:
	default: // the sender is awake
	}
}

// surrender ends the stream and takes its session's state. It returns nil if the stream has no
// state.
func (x *exchange) surrender() *sessionState {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.closed = true
	x.hook.Lost()
	left := x.state
	x.state = nil
	x.end(errMoved)
	return left
}

// errMoved ends a stream after the engine opened the same session on another one. It does not
// replace an earlier cause.
var errMoved = status.Error(codes.Aborted, "the engine has opened the session on another stream")

// send writes messages to the engine until the stream ends. After a drain, it ends the stream when
// all calls are answered.
func (x *exchange) send(ctx context.Context) {
	for ctx.Err() == nil {
		x.mu.Lock()
		out := x.hook.Outbox()
		done := x.draining && !x.hook.Busy()
		x.mu.Unlock()
		for _, m := range out {
			if err := x.conn.Send(m); err != nil {
				return // receive will get the reason
			}
		}
		switch {
		case len(out) > 0:
		case done:
			x.end(io.EOF)
		default:
			select {
			case <-x.wake:
			case <-ctx.Done():
			}
		}
	}
}

// receive reads the engine's messages until the stream ends.
func (x *exchange) receive(ctx context.Context) {
	for ctx.Err() == nil {
		m, err := x.conn.Recv()
		if err != nil {
			x.end(err)
			return
		}
		var got session.HookReceived
		x.do(func() {
			if x.closed {
				return
			}
			got, err = x.hook.Receive(m)
			if got.Session != "" {
				x.triggers.join(x) // before the Welcome is sent
			}
		})
		var version *session.VersionError
		switch {
		case errors.As(err, &version): // the engine falls back to unary calls
			x.log.Warn("cannot use a stream with this engine; waiting for unary calls", "error", err)
			x.end(status.Error(codes.Unimplemented, err.Error()))
			return
		case err != nil:
			x.log.Error("the engine violated the stream protocol; ending the stream", "error", err)
			x.end(status.Error(codes.InvalidArgument, err.Error()))
			return
		}
		x.take(ctx, got)
	}
}

// take acts on a message that the session has processed.
func (x *exchange) take(ctx context.Context, got session.HookReceived) {
	switch {
	case got.Session != "":
		if x.opened != nil {
			x.opened(got.Session)
		}
	case got.Work != nil:
		if x.called != nil {
			x.called()
		}
		x.begin(ctx, got.Work)
	case got.Cancelled != nil:
		x.do(func() {
			if cancel := x.cancels[got.Cancelled]; cancel != nil {
				cancel(errGivenUp)
			}
			x.hook.Refuse(got.Cancelled, &statuspb.Status{Code: int32(codes.Canceled), Message: "the engine gave the call up"})
		})
	case got.Drain:
		x.do(func() { x.draining = true })
	case got.TriggerResult != nil:
		x.triggers.answered(got.TriggerResult)
	case got.GoAway != nil:
		//nolint:gosec // codes are few
		x.log.Warn("the engine ends the stream", "code", codes.Code(got.GoAway.GetCode()).String(), "message",
			got.GoAway.GetMessage())
	}
}

// errGivenUp is set as the context's cause when the engine cancels a call, usually because of a
// timeout.
var errGivenUp = errors.New("the engine gave the call up")

// begin starts the function in a goroutine, where it waits for the limiter.
func (x *exchange) begin(ctx context.Context, w *session.Work) {
	ctx, cancel := context.WithCancelCause(ctx)
	timed := ctx
	stop := context.CancelFunc(func() {})
	if w.Timeout > 0 {
		timed, stop = context.WithTimeoutCause(ctx, w.Timeout, errTookLonger)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed { // the stream has ended
		stop()
		cancel(nil)
		return
	}
	x.cancels[w] = cancel
	limit := x.state.limit
	x.running.run(func() {
		defer cancel(nil)
		defer stop()
		x.answer(timed, w, limit)
		x.do(func() { delete(x.cancels, w) })
	})
}

// answer waits for the limiter, calls the function and sends the response. If the call ends while
// it waits, the function is not called.
func (x *exchange) answer(ctx context.Context, w *session.Work, limit limiter) {
	defer x.calls.watch(ctx, w.Method, w.Request, errGivenUp, errTookLonger)()
	var response proto.Message
	err := limit.take(ctx)
	if err == nil {
		defer limit.free()
		response, err = x.call(ctx, w)
	}
	if err != nil {
		s := status.Convert(err)
		refusal := &statuspb.Status{Code: s.Proto().GetCode(), Message: s.Message(), Details: s.Proto().GetDetails()}
		x.do(func() { x.hook.Refuse(w, refusal) })
		return
	}
	x.do(func() { x.hook.Answer(w, response) })
}

// call runs the function in a span that continues the engine's trace.
func (x *exchange) call(ctx context.Context, w *session.Work) (proto.Message, error) {
	ctx = propagators.Extract(ctx, propagation.MapCarrier(w.TraceContext))
	name := strings.TrimPrefix(w.Method, "/")
	service, method, _ := strings.Cut(name, "/")
	ctx, span := x.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer),
		trace.WithAttributes(semconv.RPCSystemGRPC, semconv.RPCService(service), semconv.RPCMethod(method)))
	defer span.End()
	cache, ok := w.Cache.(*callCache)
	sessionCaches.looked(ok)
	if !ok { // the first call about a parent
		cache = &callCache{}
	}
	cache = cache.renewed()
	response, err := x.methods.call(withCallCache(ctx, cache), w.Method, w.Request, x.calls)
	if err == nil {
		err = statusOf(ctx.Err())
	}
	if err != nil {
		span.SetStatus(otelcodes.Error, status.Convert(err).Message())
		return nil, err
	}
	w.Cache, w.CacheBytes = cache.ended(), cache.bytes()
	return response, nil
}
