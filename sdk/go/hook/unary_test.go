package hook_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	compositev1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/sdk/go/hook"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// TestUnaryCallsAreBounded cancels calls of a function that does not end with its context. Calls
// that wait for it are answered without it.
func TestUnaryCallsAreBounded(t *testing.T) {
	var running atomic.Int64
	release := make(chan struct{})
	connection, stop := start(t, hook.ServeOptions{Options: hook.Options{Log: slog.New(slog.DiscardHandler),
		GracePeriod: 100 * time.Millisecond}},
		hook.Composite{Sync: func(context.Context, *hook.SyncRequest) (*hook.SyncResponse, error) {
			running.Add(1)
			<-release
			return &hook.SyncResponse{}, nil
		}})
	client := compositev1.NewCompositeHookServiceClient(connection)
	for range 4 {
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range session.DefaultCalls {
			calls.Go(func() {
				if _, err := client.Sync(ctx, request()); err == nil {
					t.Error("got an answer, want none")
				}
			})
		}
		for running.Load() < session.DefaultCalls {
			runtime.Gosched()
		}
		cancel()
		calls.Wait()
		// The server reads a connection in order: after this response it has read the cancellations.
		if _, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	close(release)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if got := running.Load(); got != session.DefaultCalls {
		t.Errorf("%d functions were called, want %d", got, session.DefaultCalls)
	}
}
