package grpc

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/transporttest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// TestMemoryOfAnswers receives growing answers under a limit. Each is received, and its memory is
// held until the sync ends. A call is repeated only if an answer is larger than the previous ones.
func TestMemoryOfAnswers(t *testing.T) {
	var size, calls atomic.Int64
	thinking := func() {}
	behave := func(context.Context, transporttest.Received) transporttest.Reply {
		calls.Add(1)
		thinking()
		status := fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", int(size.Load())))
		return transporttest.Reply{Answer: &hook.Answer{Status: json.RawMessage(status)}}
	}
	address := serve(t, func(s *grpc.Server) {
		compositev1.RegisterCompositeHookServiceServer(s, transporttest.CompositeServer{Behave: behave})
	})
	b := budget.New(128 << 20)
	h, err := (&Transport{Memory: b}).Open(settings(fmt.Sprintf(`{"insecure":true,"mode":"Unary","target":%q}`, address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.Close() })
	used := func() int64 { return b.Share(budget.Decoding).Usage().Bytes }
	for _, c := range []struct{ size, calls int64 }{{100, 1}, {3 << 20, 3}, {3 << 20, 1}, {7 << 20, 2}} {
		size.Store(c.size)
		calls.Store(0)
		ctx, end := hook.Holding(t.Context())
		within := hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) { return h.Ask(ctx, q) })
		if err := ask(t, &hook.Opened{Hook: within}, hook.Composite); err != nil {
			t.Fatalf("%d bytes: %v", c.size, err)
		}
		if calls.Load() != c.calls || used() < c.size {
			t.Errorf("%d bytes: %d calls and %d bytes held, want %d calls and no less", c.size, calls.Load(), used(), c.calls)
		}
		end()
		if used() != 0 {
			t.Errorf("%d bytes: %d are held after the sync", c.size, used())
		}
	}
	thinking = func() {
		if used() != 0 {
			t.Errorf("%d bytes are held while the hook thinks", used())
		}
	}
	if err := ask(t, h, hook.Composite); err != nil {
		t.Error(err)
	}
	thinking = func() {}
	size.Store(100)
	if err := b.Share(budget.Decoding).TryAcquire(32 << 20); err != nil {
		t.Fatal(err)
	}
	short, err := (&Transport{Memory: b}).Open(
		settings(fmt.Sprintf(`{"insecure":true,"mode":"Unary","target":%q,"timeout":"1s"}`, address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = short.Close() })
	err = ask(t, short, hook.Composite)
	failure, ok := err.(*hook.Error) //nolint:errorlint // the port returns the type itself
	if !ok || failure.Reason != "MemoryBudget" {
		t.Errorf("without memory: got %v, want reason MemoryBudget", err)
	}
}

// TestStalledAnswers starts large answers of one hook that never end. Other hooks still get their
// answers.
func TestStalledAnswers(t *testing.T) {
	const calls = 3
	var stalls atomic.Bool
	begun := make(chan struct{}, calls)
	large := json.RawMessage(fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 9<<20)))
	stalling := func(ctx context.Context, _ transporttest.Received) transporttest.Reply {
		if stalls.Load() {
			_ = grpc.SendHeader(ctx, metadata.MD{})
			begun <- struct{}{}
			<-ctx.Done()
		}
		return transporttest.Reply{Answer: &hook.Answer{Status: large}}
	}
	good := func(context.Context, transporttest.Received) transporttest.Reply {
		return transporttest.Reply{Answer: &hook.Answer{}}
	}
	b := budget.New(256 << 20)
	opened := func(behave transporttest.Behavior, timeout string) *hook.Opened {
		address := serve(t, func(s *grpc.Server) {
			compositev1.RegisterCompositeHookServiceServer(s, transporttest.CompositeServer{Behave: behave})
		})
		h, err := (&Transport{Memory: b}).Open(
			settings(fmt.Sprintf(`{"insecure":true,"mode":"Unary","target":%q,"timeout":%q}`, address, timeout)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = h.Close() })
		return h
	}
	h := opened(stalling, "1m")
	other := opened(good, "20s")
	if err := ask(t, h, hook.Composite); err != nil {
		t.Fatal(err)
	}
	stalls.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	within := hook.Func(func(_ context.Context, q *hook.Question) (*hook.Answer, error) { return h.Ask(ctx, q) })
	var asking sync.WaitGroup
	for range calls {
		asking.Go(func() { _ = ask(t, &hook.Opened{Hook: within}, hook.Composite) })
	}
	defer asking.Wait()
	defer cancel()
	for range calls {
		<-begun
	}
	if err := ask(t, other, hook.Composite); err != nil {
		t.Error(err)
	}
}
