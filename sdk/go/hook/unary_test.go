package hook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
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

// TestLargeUnaryResponses has responses with many children, of which one differs from call to call,
// about two parents. Each response has the children that the function returned.
func TestLargeUnaryResponses(t *testing.T) {
	const size = 150
	calls := 0
	child := func(parent string, i, call int) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Page","metadata":{"name":"%s-%d"},"call":%d}`, parent, i, call)
	}
	text := func(parent string, i int) string { // one child has changed since each call before
		last := calls
		for last > 0 && last%size != i {
			last--
		}
		return child(parent, i, last)
	}
	connection, _ := start(t, hook.ServeOptions{}, hook.Composite{
		Sync: func(_ context.Context, req *hook.SyncRequest) (*hook.SyncResponse, error) {
			response := &hook.SyncResponse{}
			for i := range size {
				response.Children = append(response.Children, hook.Child{Object: json.RawMessage(text(req.Parent.UID, i))})
			}
			return response, nil
		},
	})
	client := compositev1.NewCompositeHookServiceClient(connection)
	for calls = range 20 {
		for _, parent := range []string{"a", "b"} {
			r := request()
			r.Parent.Uid = parent
			response, err := client.Sync(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			if len(response.GetChildren()) != size {
				t.Fatalf("call %d about %s: got %d children, want %d", calls, parent, len(response.GetChildren()), size)
			}
			for i, got := range response.GetChildren() {
				if string(got.GetBody()) != text(parent, i) {
					t.Errorf("call %d about %s: child %d is %s, want %s", calls, parent, i, got.GetBody(), text(parent, i))
				}
			}
		}
	}
}
