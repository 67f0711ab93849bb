package controller_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	clocktesting "k8s.io/utils/clock/testing"
)

// hungCalls is a Recorder that keeps the number of mappers that do not return.
type hungCalls struct{ atomic.Int64 }

func (h *hungCalls) Reconciled(host.Reconcile) {}

func (h *hungCalls) Bound(string, int) {}

func (h *hungCalls) MappersHung(_ string, calls int) { h.Store(int64(calls)) }

// TestMapperHangs: a mapper that does not return fails after a time, and is reported. Other
// controllers get the events of its type, and its own keys are reconciled. When it returns, the
// object is mapped again.
func TestMapperHangs(t *testing.T) {
	w := newFixture(t)
	c := clocktesting.NewFakeClock(time.Now())
	hung := &hungCalls{}
	w.host.Clock = c
	w.host.Recorder = hung
	w.server.Put(configMaps, body(configMaps, "a", ""))
	begun := make(chan struct{})
	release := make(chan struct{})
	ended := make(chan error, 1)
	returns := sync.OnceFunc(func() { close(release) })
	var calls atomic.Int64
	hangs := controller.Map(
		func(ctx context.Context, _ controller.Reader, _, now secret) ([]controller.Key, error) {
			if calls.Add(1) == 1 {
				close(begun)
				<-release
				ended <- context.Cause(ctx)
			}
			return []controller.Key{controller.KeyOf(now)}, nil
		})
	seen := make(chan string, 1000)
	others := make(chan string, 1000)
	group := w.run(
		controller.New[configMap]("hangs").Watch(controller.TypeOf[secret](), hangs).Reconciler(sends(seen)),
		controller.New[configMap]("other").Watch(controller.TypeOf[secret](), controller.SameName()).
			Reconciler(sends(others)))
	t.Cleanup(returns) // before the group ends
	awaitAll(t, seen, "a")
	awaitAll(t, others, "a")
	w.server.Put(secrets, body(secrets, "first", ""))
	w.server.Put(secrets, body(secrets, "second", ""))
	next(t, begun)
	awaitStepping(t, c, seen, "a")
	awaitStepping(t, c, others, "first", "second")
	problems := strings.Join(group.Problems(), "\n")
	for _, want := range []string{`controller "hangs": mapper`, "TestMapperHangs", "Secret", "has not returned for"} {
		if !strings.Contains(problems, want) {
			t.Errorf("the problems are %q, want %q in them", problems, want)
		}
	}
	if hung.Load() != 1 || calls.Load() != 1 {
		t.Errorf("%d mappers hang after %d calls, want 1 after 1", hung.Load(), calls.Load())
	}
	returns()
	if err := next(t, ended); err == nil {
		t.Error("the context of the mapper has not ended")
	}
	awaitStepping(t, c, seen, "first", "second")
	eventually(t, func() bool { return hung.Load() == 0 && len(group.Problems()) == 0 },
		func() string { return "the mapper has returned, and is still reported" })
}

// sends returns a reconciler that sends the names of keys.
func sends(seen chan<- string) controller.Reconciler[configMap] {
	return reconciler(func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
		seen <- req.Key.Name
		return controller.Result{}, nil
	})
}

// awaitStepping is awaitAll with a clock that is stepped.
func awaitStepping(t *testing.T, c *clocktesting.FakeClock, seen <-chan string, want ...string) {
	t.Helper()
	missing := map[string]bool{}
	for _, v := range want {
		missing[v] = true
	}
	deadline := time.After(time.Minute)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(missing) > 0 {
		select {
		case v := <-seen:
			delete(missing, v)
		case <-tick.C:
			c.Step(time.Second)
		case <-deadline:
			t.Fatalf("%v did not come within a minute", missing)
		}
	}
}
