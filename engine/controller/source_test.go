package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/object"
	clocktesting "k8s.io/utils/clock/testing"
)

// noting is a controller of ConfigMaps that notes each key with its last cause, in a running group.
func noting(w *fixture, sources ...controller.Source) <-chan string {
	w.t.Helper()
	seen := make(chan string, 100)
	c := controller.New[configMap]("sources").Reconciler(reconciler(
		func(_ context.Context, req *controller.Request[configMap]) (controller.Result, error) {
			if last := req.Causes[len(req.Causes)-1]; last.Kind == queue.CauseTrigger {
				seen <- req.Key.Name + " by " + last.Reason
			}
			return controller.Result{}, nil
		}))
	for _, s := range sources {
		c.Source(s)
	}
	group := w.run(c)
	eventually(w.t, group.Ready, func() string { return "the controller does not run" })
	return seen
}

// TestTicker enqueues keys in each period of the clock.
func TestTicker(t *testing.T) {
	w := newFixture(t)
	fake := clocktesting.NewFakeClock(time.Now())
	w.host.Clock = fake
	seen := noting(w, controller.Ticker(time.Hour,
		func(_ context.Context, r controller.Reader) ([]controller.Key, error) {
			all, err := controller.List[configMap](r)
			keys := []controller.Key{{Name: fmt.Sprint("found-", len(all)), Namespace: "shop"}}
			return keys, err
		}))
	w.server.Put(configMaps, body(configMaps, "a", ""))
	got := ""
	eventually(t, func() bool {
		fake.Step(time.Hour)
		select {
		case got = <-seen:
			return got == "found-1 by ticker"
		default:
			return false
		}
	}, func() string { return "the last key is " + got })
}

// TestTriggers subscribes at the gateway while the controller runs.
func TestTriggers(t *testing.T) {
	w := newFixture(t)
	type subscription struct {
		controller, worker string
		trigger            func(host.Trigger) (int, error)
	}
	subscribed := make(chan subscription, 1)
	w.host.Triggers = func(controller, worker string, f func(host.Trigger) (int, error)) func() {
		subscribed <- subscription{controller, worker, f}
		return func() {}
	}
	w.server.Put(configMaps, body(configMaps, "a", ""))
	w.server.Put(configMaps, body(configMaps, "b", ""))
	seen := noting(w, controller.Triggers("images"))
	s := next(t, subscribed)
	if s.controller != "sources" || s.worker != "images" {
		t.Errorf("%s subscribes to the worker %s, want sources and images", s.controller, s.worker)
	}
	n, err := s.trigger(host.Trigger{
		Match: func(o *object.Object) bool { return o.Name() == "b" }, Reason: "a new image",
	})
	if n != 1 || err != nil {
		t.Errorf("the trigger is about %d objects, %v, want 1", n, err)
	}
	if got := next(t, seen); got != "b by a new image" {
		t.Errorf("reconciled is %q, want b", got)
	}
}

// TestSourceIsStartedAgain after a failure and after a panic.
func TestSourceIsStartedAgain(t *testing.T) {
	w := newFixture(t)
	fake := clocktesting.NewFakeClock(time.Now())
	w.host.Clock = fake
	times := 0
	seen := noting(w, controller.SourceFunc(
		func(ctx context.Context, _ controller.Reader, enqueue controller.Enqueue) error {
			times++
			enqueue(controller.Key{Namespace: "shop", Name: fmt.Sprint("a", times)}, "test")
			switch times {
			case 1:
				panic("no luck")
			case 2:
				return errors.New("refused")
			}
			<-ctx.Done()
			return nil
		}))
	for _, want := range []string{"a1 by test", "a2 by test", "a3 by test"} {
		got := ""
		eventually(t, func() bool {
			select {
			case got = <-seen:
				return got == want
			default:
				fake.Step(time.Second)
				return false
			}
		}, func() string { return fmt.Sprintf("the last key is %q, want %q", got, want) })
	}
}
