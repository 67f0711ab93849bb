package grpc

import (
	"context"
	"fmt"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// later is a hook with streams of another protocol version.
type later struct {
	streamv1.UnimplementedHookStreamServiceServer
	compositev1.UnimplementedCompositeHookServiceServer
}

func (later) Connect(conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage]) error {
	if _, err := conn.Recv(); err != nil {
		return err
	}
	return status.Error(codes.Unimplemented, "this hook speaks version 2")
}

func (later) Sync(
	context.Context,
	*compositev1.SyncRequest,
) (*compositev1.SyncResponse, error) {
	return &compositev1.SyncResponse{}, nil
}

// TestAHookOfAnotherVersionIsAskedByUnaryCalls if the spec sets no mode.
func TestAHookOfAnotherVersionIsAskedByUnaryCalls(t *testing.T) {
	target := serve(t, func(s *grpc.Server) {
		streamv1.RegisterHookStreamServiceServer(s, later{})
		compositev1.RegisterCompositeHookServiceServer(s, later{})
	})
	opened := open(t, settings(fmt.Sprintf(`{"target":%q,"insecure":true}`, target)))
	if err := ask(t, opened, hook.Composite); err != nil {
		t.Errorf("got %v, want an answer by a unary call", err)
	}
}
