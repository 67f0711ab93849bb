package server

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/hookloop/hookloop/engine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// loggedEngine notes in which order it is used.
type loggedEngine struct {
	mu  sync.Mutex // guards log
	log []string
	// ready is closed when the engine's controllers run.
	ready chan struct{}
}

func (e *loggedEngine) note(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.log = append(e.log, what)
}

func (e *loggedEngine) noted() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.log)
}

func (e *loggedEngine) Warm(ctx context.Context) {
	e.note("warm")
	<-ctx.Done()
	e.note("cool")
}

func (e *loggedEngine) Run(ctx context.Context) error {
	e.note("run")
	<-ctx.Done()
	return nil
}

func (e *loggedEngine) Ready() bool {
	select {
	case <-e.ready:
		return true
	default:
		return false
	}
}

func (e *loggedEngine) Warmed() bool       { return true }
func (e *loggedEngine) Problems() []string { return nil }
func (e *loggedEngine) Close()             { e.note("close") }

// campaign is a process that takes part in an election with a lease in memory.
func campaign(
	ctx context.Context, t *testing.T, shared *lease, build func(context.Context) (runner, error),
) <-chan error {
	t.Helper()
	result := make(chan error, 1)
	p := &process{fence: engine.NewFence(), build: build}
	p.LeaderElection = election
	ctx = klog.NewContext(ctx, testr.New(t))
	go func() { result <- p.campaign(ctx, replica{shared, "b", nil}) }()
	synctest.Wait()
	return result
}

// pass lets time pass on the bubble's clock.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// heldLease is a lease that another replica holds and does not renew.
func heldLease(t *testing.T) *lease {
	t.Helper()
	return &lease{record: &resourcelock.LeaderElectionRecord{
		HolderIdentity: "a", LeaseDurationSeconds: int(leaseDuration / time.Second),
		AcquireTime: metav1.Now(), RenewTime: metav1.Now(),
	}}
}

// TestStandbyIsWarmedBeforeItLeads: while another replica leads, the engine is built and warmed. It
// runs when the lease is free, and the handles of the time before are given back when its
// controllers run.
func TestStandbyIsWarmedBeforeItLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &loggedEngine{ready: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		result := campaign(ctx, t, heldLease(t), func(context.Context) (runner, error) { return e, nil })
		if got := e.noted(); !slices.Equal(got, []string{"warm"}) {
			t.Errorf("while another replica leads: %v, want warm alone", got)
		}
		for len(e.noted()) < 2 {
			pass(retryPeriod)
		}
		pass(2 * coolInterval)
		if got := e.noted(); !slices.Equal(got, []string{"warm", "run"}) {
			t.Errorf("as leader, before its controllers run: %v, want warm, run", got)
		}
		close(e.ready)
		pass(2 * coolInterval)
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got := e.noted(); !slices.Equal(got, []string{"warm", "run", "cool", "close"}) {
			t.Errorf("in all: %v, want warm, run, cool, close", got)
		}
	})
}

// TestFirstLeaderIsNotWarmed: a replica that leads immediately has no views to revalidate.
func TestFirstLeaderIsNotWarmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &loggedEngine{ready: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		result := campaign(ctx, t, &lease{}, func(context.Context) (runner, error) { return e, nil })
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got := e.noted(); !slices.Equal(got, []string{"run", "close"}) {
			t.Errorf("%v, want run, close", got)
		}
	})
}

// TestStandbyThatNeverLeads ends its engine.
func TestStandbyThatNeverLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &loggedEngine{ready: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		result := campaign(ctx, t, heldLease(t), func(context.Context) (runner, error) { return e, nil })
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got := e.noted(); !slices.Equal(got, []string{"warm", "cool", "close"}) {
			t.Errorf("%v, want warm, cool, close", got)
		}
	})
}

// TestStandbyThatCannotBeBuilt ends with the reason, without waiting for the lease.
func TestStandbyThatCannotBeBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		result := campaign(t.Context(), t, heldLease(t), func(context.Context) (runner, error) { return nil, broken })
		if err := <-result; !errors.Is(err, broken) {
			t.Errorf("got %v, want %v", err, broken)
		}
	})
}

// TestColdStandby does nothing while another replica leads.
func TestColdStandby(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &loggedEngine{ready: make(chan struct{})}
		p := &process{fence: engine.NewFence(), build: func(context.Context) (runner, error) { return e, nil }}
		p.LeaderElection = LeaderElection{Enabled: true, ID: "test"}
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), testr.New(t)))
		result := make(chan error, 1)
		shared := heldLease(t)
		go func() { result <- p.campaign(ctx, replica{shared, "b", nil}) }()
		synctest.Wait()
		stop()
		if err := <-result; err != nil {
			t.Error(err)
		}
		if got := e.noted(); len(got) > 0 {
			t.Errorf("%v, want nothing", got)
		}
	})
}
