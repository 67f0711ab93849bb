package lease_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookloop/hookloop/internal/lease"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	duration = 15 * time.Second
	timeout  = 10 * time.Second
	retry    = 2 * time.Second
)

// api is an API server with one Lease.
type api struct {
	mu      sync.Mutex // guards record and version
	record  *lease.Record
	version int
}

// lock is one replica's client of an API server.
type lock struct {
	*api
	known int
	// fails returns the error of a request, or waits; nil for an API server that always answers.
	// lost reports that a write arrives, and its response does not.
	fails func(context.Context) (err error, lost bool)
}

var leases = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

func (l *lock) do(ctx context.Context, request func() error) error {
	if l.fails == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return request()
	}
	err, lost := l.fails(ctx)
	if err != nil && !lost {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(request(), err)
}

func (l *lock) Get(ctx context.Context) (found lease.Record, err error) {
	err = l.do(ctx, func() error {
		if l.record == nil {
			return apierrors.NewNotFound(leases, "test")
		}
		found, l.known = *l.record, l.version
		return nil
	})
	return found, err
}

func (l *lock) Create(ctx context.Context, r lease.Record) error {
	return l.do(ctx, func() error {
		if l.record != nil {
			return apierrors.NewAlreadyExists(leases, "test")
		}
		return l.put(r)
	})
}

func (l *lock) Update(ctx context.Context, r lease.Record) error {
	return l.do(ctx, func() error {
		if l.known != l.version {
			return apierrors.NewConflict(leases, "test", errors.New("it has changed"))
		}
		return l.put(r)
	})
}

func (l *lock) put(r lease.Record) error {
	l.record, l.version = &r, l.version+1
	l.known = l.version
	return nil
}

func newElector(t *testing.T, l lease.Lock, identity string) *lease.Elector {
	t.Helper()
	e, err := lease.New(lease.Config{
		Lock: l, Identity: identity, Duration: duration, RenewTimeout: timeout, Retry: retry,
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTakesAnExpiredLease: the clock of the dead leader is an hour ahead. Its Lease is taken when
// this replica has seen no change for the duration of the Lease, and no earlier.
func TestTakesAnExpiredLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Now().Add(time.Hour)
		server := &api{record: &lease.Record{
			Holder: "dead", Duration: duration, Acquired: ahead, Renewed: ahead, Transitions: 4,
		}}
		ctx, stop := context.WithCancel(t.Context())
		begun, done := time.Now(), make(chan struct{})
		var led time.Duration
		newElector(t, &lock{api: server}, "a").Run(ctx, func(context.Context) {
			defer close(done)
			led = time.Since(begun)
			if r := server.record; r.Holder != "a" || r.Transitions != 5 || r.Duration != duration {
				t.Errorf("the Lease is %+v, want that of a with 5 transitions", *r)
			}
			stop()
		})
		<-done
		if led < duration || led > duration+3*retry {
			t.Errorf("it leads after %s, want %s and at most three tries more", led, duration)
		}
		if r := server.record; r.Holder != "" || r.Transitions != 5 {
			t.Errorf("after the end the Lease is %+v, want a released one with 5 transitions", *r)
		}
	})
}

// TestNeverTwoLeaders: replicas behind an API server that refuses requests, delays them, or loses
// the response of a write. A leader may work from the response of a write until the renewal timeout
// after its request. The times of two replicas must not overlap.
func TestNeverTwoLeaders(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { neverTwo(t, rand.New(rand.NewPCG(seed, 0))) })
		})
	}
}

func neverTwo(t *testing.T, random *rand.Rand) {
	server := &api{}
	var mu sync.Mutex // guards random, terms
	var terms []term
	chance := func(n int) bool {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n) == 0
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute)
	defer stop()
	ctx = klog.NewContext(ctx, klog.Logger{})
	var running sync.WaitGroup
	for i := range 3 {
		name := string(rune('a' + i))
		l := &lock{api: server, fails: func(ctx context.Context) (error, bool) {
			switch {
			case chance(4):
				return errors.New("unreachable"), false
			case chance(6):
				return errors.New("connection reset"), true
			case chance(8):
				select {
				case <-ctx.Done():
				case <-time.After(timeout / 2): // as the client of the engine
				}
				return errors.New("no response"), false
			}
			return nil, false
		}}
		recorded := &recorder{Lock: l, name: name, add: func(x term) {
			mu.Lock()
			defer mu.Unlock()
			terms = append(terms, x)
		}}
		running.Go(func() {
			for ctx.Err() == nil { // a replica that lost its Lease is started again
				newElector(t, recorded, name).Run(ctx, func(ctx context.Context) { <-ctx.Done() })
			}
		})
	}
	running.Wait()
	holders := map[string]bool{}
	for i, x := range terms {
		holders[x.name] = true
		for _, y := range terms[i+1:] {
			if x.name != y.name && x.from.Before(y.until) && y.from.Before(x.until) {
				t.Fatalf("%s and %s both lead: %+v, %+v", x.name, y.name, x, y)
			}
		}
	}
	if len(holders) == 0 {
		t.Error("no replica has led")
	}
}

// term is the time for which a replica may work after a write of the Lease.
type term struct {
	name        string
	from, until time.Time
}

// recorder records the terms of a replica.
type recorder struct {
	lease.Lock
	name string
	add  func(term)
}

func (r *recorder) Create(ctx context.Context, x lease.Record) error {
	return r.write(ctx, x, r.Lock.Create)
}

func (r *recorder) Update(ctx context.Context, x lease.Record) error {
	return r.write(ctx, x, r.Lock.Update)
}

func (r *recorder) write(
	ctx context.Context, x lease.Record, send func(context.Context, lease.Record) error,
) error {
	sent := time.Now()
	err := send(ctx, x)
	if err == nil && x.Holder == r.name {
		r.add(term{r.name, time.Now(), sent.Add(timeout)})
	}
	return err
}

func TestNewRefusesTimes(t *testing.T) {
	for name, c := range map[string]lease.Config{
		"no lock":              {Identity: "a", Duration: duration, RenewTimeout: timeout, Retry: retry},
		"no identity":          {Lock: &lock{}, Duration: duration, RenewTimeout: timeout, Retry: retry},
		"a renewal too long":   {Lock: &lock{}, Identity: "a", Duration: duration, RenewTimeout: duration, Retry: retry},
		"tries too far apart":  {Lock: &lock{}, Identity: "a", Duration: duration, RenewTimeout: timeout, Retry: timeout},
		"no time between them": {Lock: &lock{}, Identity: "a", Duration: duration, RenewTimeout: timeout},
	} {
		if _, err := lease.New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
