package grpc

import (
	"context"
	"fmt"
	"sync"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/transporttest"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// streamServer gives the answers of the unary test servers over streams.
type streamServer struct {
	streamv1.UnimplementedHookStreamServiceServer
	composite transporttest.CompositeServer
	decorator transporttest.DecoratorServer
	mapping   transporttest.MapServer
	build     string
	mu        sync.Mutex // guards memories
	memories  map[string]*session.State
	// tamper may change or replace a message before it is sent.
	tamper func(*streamv1.HookMessage) []*streamv1.HookMessage
}

func newStreamServer(behave transporttest.Behavior) *streamServer {
	return &streamServer{
		composite: transporttest.CompositeServer{
			Behave: behave,
		},
		decorator: transporttest.DecoratorServer{Behave: behave},
		mapping:   transporttest.MapServer{Behave: behave},
		memories:  map[string]*session.State{},
		tamper:    func(m *streamv1.HookMessage) []*streamv1.HookMessage { return []*streamv1.HookMessage{m} },
	}
}

func serveStream(t *testing.T, s *streamServer) string {
	t.Helper()
	return serve(t, func(server *grpc.Server) { streamv1.RegisterHookStreamServiceServer(server, s) })
}

func (s *streamServer) memory(id string) *session.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.memories[id] == nil {
		s.memories[id] = session.NewState(0)
	}
	return s.memories[id]
}

// Connect serves one stream, with concurrent calls.
func (s *streamServer) Connect(conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage]) error {
	var (
		mu    sync.Mutex // guards the machine and the sending
		calls sync.WaitGroup
	)
	cancels := map[*session.Work]context.CancelFunc{}
	machine := session.NewHook(session.HookConfig{Build: s.build, State: s.memory})
	defer machine.Lost()
	defer calls.Wait()
	flush := func() (err error) {
		for _, m := range machine.Outbox() {
			for _, m := range s.tamper(m) {
				err = conn.Send(m)
			}
		}
		return err
	}
	for {
		m, err := conn.Recv()
		if err != nil {
			return nil //nolint:nilerr // the engine has ended the stream
		}
		mu.Lock()
		got, err := machine.Receive(m)
		if err == nil {
			err = flush()
		}
		mu.Unlock()
		if err != nil {
			return err
		}
		if cancel := cancels[got.Cancelled]; cancel != nil {
			cancel()
		}
		if w := got.Work; w != nil {
			ctx, cancel := context.WithTimeout(conn.Context(), w.Timeout)
			cancels[w] = cancel
			calls.Go(func() {
				defer cancel()
				ctx := otel.GetTextMapPropagator().Extract(ctx, propagation.MapCarrier(w.TraceContext))
				response, err := s.answer(ctx, w)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					p := status.Convert(err).Proto()
					machine.Refuse(w, &statuspb.Status{Code: p.GetCode(), Message: p.GetMessage(), Details: p.GetDetails()})
				} else {
					machine.Answer(w, response)
				}
				if err := flush(); err != nil {
					return // the stream has ended
				}
			})
		}
	}
}

func (s *streamServer) answer(ctx context.Context, w *session.Work) (proto.Message, error) {
	switch r := w.Request.(type) {
	case *compositev1.SyncRequest:
		return s.composite.Sync(ctx, r)
	case *compositev1.FinalizeRequest:
		return s.composite.Finalize(ctx, r)
	case *compositev1.CustomizeRequest:
		return s.composite.Customize(ctx, r)
	case *decoratorv1.SyncRequest:
		return s.decorator.Sync(ctx, r)
	case *decoratorv1.FinalizeRequest:
		return s.decorator.Finalize(ctx, r)
	case *decoratorv1.CustomizeRequest:
		return s.decorator.Customize(ctx, r)
	case *mapv1.MapRequest:
		return s.mapping.Map(ctx, r)
	case *mapv1.TombstoneRequest:
		return s.mapping.Tombstone(ctx, r)
	case *mapv1.FinalizeRequest:
		return s.mapping.Finalize(ctx, r)
	case *mapv1.CustomizeRequest:
		return s.mapping.Customize(ctx, r)
	default:
		return nil, fmt.Errorf("got a %T", r)
	}
}
