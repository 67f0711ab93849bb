package share

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/clock"
)

var _ flowcontrol.RateLimiter = (*Limiter)(nil)

// TestTurns: a flow with a thousand requests delays another one's by no more than a request for
// each flow that waits.
func TestTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := map[string][]time.Duration{}
		var mu sync.Mutex
		l := NewLimiter(100, 10, clock.RealClock{}, func(flow string, waited time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			waits[flow] = append(waits[flow], waited)
		})
		var wait sync.WaitGroup
		for _, flow := range []string{"a", "b"} {
			for range 500 {
				wait.Go(func() { _ = l.Wait(WithFlow(t.Context(), flow)) })
			}
		}
		synctest.Wait()
		began := time.Now()
		for range 20 {
			_ = l.Wait(WithFlow(t.Context(), "bystander"))
		}
		if took := time.Since(began); took > 20*31*time.Millisecond {
			t.Errorf("20 requests of a bystander took %s, want at most 30 ms each", took)
		}
		wait.Wait()
		if took := time.Since(began); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("1020 requests at 100 a second took %s", took)
		}
		if len(waits["a"]) != 500 || len(waits["b"]) != 500 || len(waits["bystander"]) != 20 {
			t.Errorf("observed %d, %d and %d waits", len(waits["a"]), len(waits["b"]), len(waits["bystander"]))
		}
		l.mustRest(t)
	})
}

// TestBurst passes immediately, and refills.
func TestBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(10, 5, clock.RealClock{}, nil)
		for round := range 2 {
			for i := range 5 {
				if !l.TryAccept() {
					t.Fatalf("round %d: request %d of the burst is refused", round, i)
				}
			}
			if l.TryAccept() {
				t.Errorf("round %d: a sixth request is accepted", round)
			}
			time.Sleep(time.Hour)
		}
	})
}

// TestLeaving gives the token of a request that has left to the next.
func TestLeaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(1, 1, clock.RealClock{}, nil)
		l.Accept()
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error)
		for _, flow := range []string{"a", "a", "b"} {
			go func() { left <- l.Wait(WithFlow(ctx, flow)) }()
		}
		synctest.Wait()
		done := make(chan struct{})
		go func() { l.Accept(); close(done) }()
		synctest.Wait()
		cancel()
		for range 3 {
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("Wait = %v", err)
			}
		}
		began := time.Now()
		<-done
		if took := time.Since(began); took > time.Second {
			t.Errorf("the one that stayed waited for %s, want at most 1 s", took)
		}
		l.mustRest(t)
	})
}

func TestWaits(t *testing.T) {
	var none *Waits
	if none.Take(0) {
		t.Error("a nil Waits allows a sync to wait")
	}
	w := NewWaits(2, 100)
	for _, step := range []struct {
		size int64
		want bool
	}{{60, true}, {50, false}, {40, true}, {0, false}} {
		if got := w.Take(step.size); got != step.want {
			t.Errorf("Take(%d) = %t", step.size, got)
		}
	}
	w.Give(60)
	w.Give(40)
	if syncs, bytes, refused := w.Stats(); syncs != 0 || bytes != 0 || refused != 2 {
		t.Errorf("Stats = %d, %d, %d", syncs, bytes, refused)
	}
}

// mustRest checks that nothing is kept of requests that wait no more.
func (l *Limiter) mustRest(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queues) != 0 || len(l.turns) != 0 {
		t.Errorf("%d queues and %d turns are left", len(l.queues), len(l.turns))
	}
}
