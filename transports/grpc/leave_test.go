package grpc

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/transporttest"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestAddressesThatLeaveEndTheirCalls removes an address during a question. The question is
// answered, no further one is sent, and the stream ends with the answer. The fake clock does not
// move.
func TestAddressesThatLeaveEndTheirCalls(t *testing.T) {
	asked := make(chan struct{})
	answer := make(chan struct{})
	address := serveStream(t, newStreamServer(func(context.Context, transporttest.Received) transporttest.Reply {
		asked <- struct{}{}
		<-answer
		return transporttest.Reply{Answer: &hook.Answer{}}
	}))
	d := dialerTo(t, address)
	changed := make(chan struct{}, 1)
	d.session.Changed = func() {
		d.pool.Changed()
		select {
		case changed <- struct{}{}:
		default: // signalled already
		}
	}
	var wait sync.WaitGroup
	l := d.link(t.Context(), &wait, address)
	opened := &hook.Opened{Hook: stream.Hook{Pool: d.pool, Name: "sync test", Timeout: time.Minute}}
	replied := make(chan error, 1)
	go func() { replied <- ask(t, opened, hook.Composite) }()
	<-asked
	d.drain(&wait, l)
	for late := time.After(time.Minute); l.session.Open(); {
		select {
		case <-changed:
		case <-late:
			t.Fatal("the link takes questions still")
		}
	}
	close(answer)
	if err := <-replied; err != nil {
		t.Errorf("the question is not answered: %v", err)
	}
	ended(t, &wait)
}

// ended waits for the goroutines of a link.
func ended(t *testing.T, wait *sync.WaitGroup) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		wait.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("the link goes on")
	}
}

// TestAddressesThatLeaveWithoutAStream ends a link without a stream immediately.
func TestAddressesThatLeaveWithoutAStream(t *testing.T) {
	address := transporttest.ClosedAddress(t)
	d := dialerTo(t, address)
	var wait sync.WaitGroup
	l := d.link(t.Context(), &wait, address)
	d.drain(&wait, l)
	ended(t, &wait)
}

// dialerTo returns a dialer with a fake clock.
func dialerTo(t *testing.T, address string) *dialer {
	t.Helper()
	s := settings(string(field(address, "", streamMode)))
	config, err := parse(s.Field)
	if err != nil {
		t.Fatal(err)
	}
	keyring, _, err := config.keyring(s, address, endpoint.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	return &dialer{
		config:  config,
		address: address,
		keyring: keyring,
		pool:    stream.NewPool(clock.RealClock{}, nil),
		clock:   clocktesting.NewFakeClock(time.Now()),
		session: stream.Config{Clock: clock.RealClock{}},
	}
}

// TestBackoffGrowsUntilStable opens and ends streams.
func TestBackoffGrowsUntilStable(t *testing.T) {
	attempt := 0
	for range 40 {
		attempt = nextAttempt(attempt, true, stableAfter/2)
	}
	if wait := backoffDelay(attempt); wait < reconnect.Backoff.MaxDelay/2 {
		t.Errorf("after 40 streams that ended soon the next attempt is made after %s, want about %s", wait,
			reconnect.Backoff.MaxDelay)
	}
	if next := nextAttempt(attempt, false, time.Hour); next != attempt+1 {
		t.Errorf("an attempt that never opened is followed by number %d, want %d", next, attempt+1)
	}
	if next := nextAttempt(attempt, true, stableAfter); next != 0 {
		t.Errorf("good service is followed by attempt %d, want 0", next)
	}
}
