package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lease is a Lease in memory that several replicas share.
type lease struct {
	mu     sync.Mutex // guards record and broken
	record *resourcelock.LeaderElectionRecord
	// broken makes every request fail, as an API server that is gone.
	broken bool
}

func (l *lease) set(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

func (l *lease) holder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record == nil {
		return ""
	}
	return l.record.HolderIdentity
}

// replica is one replica's view of the lease.
type replica struct {
	*lease
	name string
}

func (r replica) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return nil, nil, errors.New("unreachable")
	}
	if r.record == nil {
		return nil, nil, apierrors.NewNotFound(schema.GroupResource{Resource: "leases"}, "test")
	}
	copied := *r.record
	raw, err := json.Marshal(copied)
	return &copied, raw, err
}

func (r replica) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return r.Update(ctx, record)
}

func (r replica) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return errors.New("unreachable")
	}
	r.record = &record
	return nil
}

func (replica) RecordEvent(string) {}
func (r replica) Identity() string { return r.name }
func (r replica) Describe() string { return r.name }

var election = LeaderElection{Enabled: true, ID: "test"}

// TestLeadKeepsTheLeaseUntilWorkHasReturned stops a leader: the lease is given back after its work, and not before.
func TestLeadKeepsTheLeaseUntilWorkHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		ctx, stop := context.WithCancel(t.Context())
		finish, result := make(chan struct{}), make(chan error, 1)
		go func() {
			result <- election.lead(ctx, replica{shared, "a"}, func(ctx context.Context) error {
				<-ctx.Done()
				<-finish
				return nil
			})
		}()
		synctest.Wait()
		if got := shared.holder(); got != "a" {
			t.Fatalf("the lease is held by %q, want a", got)
		}
		stop()
		synctest.Wait()
		if got := shared.holder(); got != "a" {
			t.Errorf("while work goes on the lease is held by %q, want a", got)
		}
		close(finish)
		if err := <-result; err != nil {
			t.Errorf("an ordered stop gives %v, want no error", err)
		}
		if got := shared.holder(); got != "" {
			t.Errorf("after work the lease is held by %q, want nobody", got)
		}
	})
}

// TestLeadLosesTheLease cuts the leader off: work is told to stop, and the error says why.
func TestLeadLosesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		result := make(chan error, 1)
		go func() {
			result <- election.lead(t.Context(), replica{shared, "a"}, func(ctx context.Context) error {
				<-ctx.Done()
				return nil
			})
		}()
		synctest.Wait()
		shared.set(true)
		if err := <-result; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("got %v, want ErrLeaseLost", err)
		}
	})
}

// TestLeadStandsBy runs two replicas: the second works only after the first has stopped; a third that is stopped while it
// stands by never works.
func TestLeadStandsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		var mu sync.Mutex
		var order []string
		run := func(ctx context.Context, name string) <-chan error {
			result := make(chan error, 1)
			go func() {
				result <- election.lead(ctx, replica{shared, name}, func(ctx context.Context) error {
					mu.Lock()
					order = append(order, name)
					mu.Unlock()
					<-ctx.Done()
					return nil
				})
			}()
			synctest.Wait()
			return result
		}
		first, stopFirst := context.WithCancel(t.Context())
		second, stopSecond := context.WithCancel(t.Context())
		third, stopThird := context.WithCancel(t.Context())
		firstDone, secondDone, thirdDone := run(first, "a"), run(second, "b"), run(third, "c")
		stopThird()
		if err := <-thirdDone; err != nil {
			t.Errorf("c, standing by, stops with %v", err)
		}
		stopFirst()
		if err := <-firstDone; err != nil {
			t.Errorf("a stops with %v", err)
		}
		for shared.holder() != "b" {
			synctest.Wait()
			<-time.After(retryPeriod) // the bubble's clock: no time passes
		}
		synctest.Wait()
		stopSecond()
		if err := <-secondDone; err != nil {
			t.Errorf("b stops with %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(order) != 2 || order[0] != "a" || order[1] != "b" {
			t.Errorf("worked: %v, want a, then b", order)
		}
	})
}

func TestLeadNeedsANamespace(t *testing.T) {
	if _, err := election.lock(nil); err == nil {
		t.Error("no error outside of a Pod, want one that names --leader-election-namespace")
	}
}
