package server

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/engine"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lease is a Lease in memory that several replicas share.
type lease struct {
	mu     sync.Mutex // guards record and broken
	record *resourcelock.LeaderElectionRecord
	// broken makes every request fail, as an API server that is gone; silent lets every request
	// wait for its end.
	broken, silent bool
	// version counts writes; each replica has read one of them. reads counts all reads.
	version, reads int
}

func (l *lease) set(broken bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = broken
}

// seize gives the lease to another holder, as only a person or a partition does.
func (l *lease) seize(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := *l.record
	taken.HolderIdentity = name
	taken.RenewTime = metav1.Now()
	taken.LeaderTransitions++ // times have whole seconds in this record
	l.record = &taken
	l.version++
}

func (l *lease) silence() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = true
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
	// read is the version of the lease that was read or written last; nil checks no version.
	read *int
}

// reach waits as long as the API server is silent.
func (r replica) reach(ctx context.Context) error {
	r.mu.Lock()
	silent := r.silent
	r.mu.Unlock()
	if !silent {
		return nil
	}
	<-ctx.Done()
	return ctx.Err()
}

func (r replica) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := r.reach(ctx); err != nil {
		return nil, nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reads++
	if r.read != nil {
		*r.read = r.version
	}
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

func (r replica) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if err := r.reach(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return errors.New("unreachable")
	}
	if r.read != nil && *r.read != r.version {
		return apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "test", errors.New("it has changed"))
	}
	r.record = &record
	r.version++
	if r.read != nil {
		*r.read = r.version
	}
	return nil
}

func (replica) RecordEvent(string) {}
func (r replica) Identity() string { return r.name }
func (r replica) Describe() string { return r.name }

var election = LeaderElection{Enabled: true, ID: "test", WarmStandby: true}

// noStandby does nothing while another replica leads.
func noStandby() {}

// TestLeadKeepsTheLeaseUntilWorkHasReturned stops a leader: the lease is given back after its work,
// and not before.
func TestLeadKeepsTheLeaseUntilWorkHasReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		ctx, stop := context.WithCancel(t.Context())
		finish := make(chan struct{})
		result := make(chan error, 1)
		go func() {
			result <- election.lead(ctx, replica{shared, "a", nil}, engine.NewFence(), noStandby,
				func(ctx context.Context) error {
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

// TestLeadLosesTheLease cuts the leader off: work's context ends, and the error gives the reason.
func TestLeadLosesTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		result := make(chan error, 1)
		go func() {
			result <- election.lead(t.Context(), replica{shared, "a", nil}, engine.NewFence(), noStandby,
				func(ctx context.Context) error {
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

// TestLeadLosesTheLeaseToAnother overwrites the lease: the next renewal shows it, and from then on
// nothing is written. Work ends immediately, without waiting for the renewal deadline, and with the
// cause that leaves no grace.
func TestLeadLosesTheLeaseToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		fence := engine.NewFence()
		result := make(chan error, 1)
		ended := make(chan error, 1)
		go func() {
			result <- election.lead(t.Context(), replica{shared, "a", new(int)}, fence, noStandby,
				func(ctx context.Context) error {
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return nil
				})
		}()
		synctest.Wait()
		writing, end, err := fence.Begin(t.Context())
		if err != nil {
			t.Fatalf("the leader may not write: %v", err)
		}
		defer end()
		shared.seize("b")
		begun := time.Now()
		if cause := <-ended; !errors.Is(cause, engine.ErrStopNow) {
			t.Errorf("work ends for the cause %v, want ErrStopNow", cause)
		}
		if took := time.Since(begun); took > renewPeriod { // the bubble's clock
			t.Errorf("it took %s until work ended, want no more than the time between renewals, %s", took, renewPeriod)
		}
		<-writing.Done()
		if err := context.Cause(writing); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("the write under way has the cause %v, want ErrFenced", err)
		}
		if _, _, err := fence.Begin(t.Context()); !errors.Is(err, engine.ErrFenced) {
			t.Errorf("a write after the lease was lost: %v, want ErrFenced", err)
		}
		if err := <-result; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("got %v, want ErrLeaseLost", err)
		}
		if got := shared.holder(); got != "b" {
			t.Errorf("the lease is held by %q, want b", got)
		}
	})
}

// TestFenceClosesThoughTheRenewalHangs: nothing is written from the renewal deadline on, which is
// before anybody else can lead.
func TestFenceClosesThoughTheRenewalHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		fence := engine.NewFence()
		result := make(chan error, 1)
		go func() {
			result <- election.lead(t.Context(), replica{shared, "a", new(int)}, fence, noStandby,
				func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
		}()
		synctest.Wait()
		writing, end, err := fence.Begin(t.Context())
		if err != nil {
			t.Fatalf("the leader may not write: %v", err)
		}
		defer end()
		begun := time.Now()
		shared.silence()
		<-writing.Done()
		if took := time.Since(begun); took > renewDeadline { // the bubble's clock
			t.Errorf("the fence closed after %s, want %s at the latest; another may lead after %s", took,
				renewDeadline, leaseDuration)
		}
		if err := <-result; !errors.Is(err, ErrLeaseLost) {
			t.Errorf("got %v, want ErrLeaseLost", err)
		}
	})
}

// TestLeadStandsBy runs two replicas: the second works only after the first has stopped; a third
// that is stopped while it waits to lead never works.
func TestLeadStandsBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := &lease{}
		var mu sync.Mutex
		var order []string
		run := func(ctx context.Context, name string) <-chan error {
			result := make(chan error, 1)
			go func() {
				result <- election.lead(ctx, replica{shared, name, nil}, engine.NewFence(), noStandby,
					func(ctx context.Context) error {
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
		firstDone := run(first, "a")
		secondDone := run(second, "b")
		thirdDone := run(third, "c")
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

// TestFreeLeaseIsTakenSoon: leaders die at some time after their last renewal. The other replica
// has the lease soon after its end, and reads it no more often than every readPeriod before.
func TestFreeLeaseIsTakenSoon(t *testing.T) {
	for phase := range 20 {
		synctest.Test(t, func(t *testing.T) {
			shared := heldLease(t)
			ctx, stop := context.WithCancel(t.Context())
			result := make(chan error, 1)
			go func() {
				result <- election.lead(ctx, replica{shared, "b", new(int)}, engine.NewFence(), noStandby,
					func(ctx context.Context) error {
						<-ctx.Done()
						return nil
					})
			}()
			pass(time.Duration(phase) * 37 * time.Millisecond)
			shared.seize("a") // the last renewal
			died := time.Now()
			for shared.holder() != "b" {
				pass(time.Millisecond)
			}
			took := time.Since(died)
			if most := leaseDuration + readPeriod + 5*retryPeriod; took < leaseDuration || took > most {
				t.Errorf("the lease was taken after %s, want after %s to %s", took, leaseDuration, most)
			}
			stop()
			if err := <-result; err != nil {
				t.Error(err)
			}
			if most := int(took/readPeriod) + 5; shared.reads > most {
				t.Errorf("%d reads in %s, want at most %d", shared.reads, took, most)
			}
		})
	}
}

// TestLeaseReads: the last read is not used again after a failed one for longer than
// readPeriod, nor after a write.
func TestLeaseReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := heldLease(t)
		l := &fencedLock{Interface: replica{shared, "b", nil}, fence: engine.NewFence(), lost: func() {}}
		reads := func(after time.Duration, want int, wantErr bool) {
			t.Helper()
			pass(after)
			if _, _, err := l.Get(t.Context()); shared.reads != want || (err != nil) != wantErr {
				t.Errorf("%d reads and the error %v, want %d reads and an error: %t", shared.reads, err, want, wantErr)
			}
		}
		reads(0, 1, false)
		reads(readPeriod/2, 1, false)
		reads(readPeriod/2, 2, false)
		shared.set(true)
		reads(readPeriod, 3, true)
		shared.set(false)
		reads(readPeriod/2, 3, true)
		reads(readPeriod/2, 4, false)
		if err := l.Update(t.Context(), *shared.record); err != nil {
			t.Fatal(err)
		}
		reads(0, 5, false)
	})
}

func TestLeadNeedsANamespace(t *testing.T) {
	if _, err := election.lock(nil); err == nil {
		t.Error("no error outside of a Pod, want one that names --leader-election-namespace")
	}
}
