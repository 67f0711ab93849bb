package gateway

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"k8s.io/apimachinery/pkg/labels"
)

// TestResyncsAreThrottled attaches and leaves as fast as possible. The controller gets few
// triggers, and always the last one.
func TestResyncsAreThrottled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		triggers := make(chan hook.Trigger, 1000)
		h.open(settingsOf("web", triggers), "", answering("own"))
		for range 100 {
			h.attachOnce("laptop", intercepting("blue"))
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		if n := len(triggers); n < 2 || n > 4 {
			t.Errorf("in 10 s the controller is triggered %d times, want one at once and one for each 5 s", n)
		}
		var last hook.Trigger
		for len(triggers) > 0 {
			last = <-triggers
		}
		if last.Reason != "an intercept has ended" || last.Selector.String() != "team=blue" || !last.Invalidate ||
			!last.LowPriority {
			t.Errorf("the last trigger is %+v", last)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.throttles) > 0 {
			t.Errorf("the gateway remembers %d controllers that nothing is to be told", len(h.throttles))
		}
	})
}

// TestRefusedResyncsAreRepeated repeats a trigger until the controller accepts it.
func TestRefusedResyncsAreRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newTestGateway(t)
		var calls atomic.Int32
		s := settingsOf("web", nil)
		s.Trigger = func(hook.Trigger) (int, error) {
			if calls.Add(1) < 3 {
				return 0, hook.ErrTooManyTriggers
			}
			return 1, nil
		}
		h.open(s, "", answering("own"))
		h.attach("laptop", intercepting("blue"))
		time.Sleep(time.Minute)
		if n := calls.Load(); n != 3 {
			t.Errorf("the controller is calls %d times, want until it does it", n)
		}
	})
}

// TestResyncsAreMerged merges triggers into one for at least the same parents.
func TestResyncsAreMerged(t *testing.T) {
	team := func(name string) hook.Trigger {
		return hook.Trigger{Selector: labels.SelectorFromSet(labels.Set{"team": name})}
	}
	named := func(names ...string) hook.Trigger {
		w := hook.Trigger{Selector: labels.Everything()}
		for _, n := range names {
			w.Parents = append(w.Parents, hook.ParentName{Name: n})
		}
		return w
	}
	many := make([]string, stream.MaxParents)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	cases := map[string]struct{ first, second, want hook.Trigger }{
		"the same selector":   {team("blue"), team("blue"), team("blue")},
		"different selectors": {team("blue"), team("red"), hook.Trigger{}},
		"all and some":        {hook.Trigger{}, team("red"), hook.Trigger{}},
		"names":               {named("a"), named("b"), named("a", "b")},
		"names and some":      {named("a"), team("red"), hook.Trigger{}},
		"too many names":      {named(many...), named("one more"), hook.Trigger{}},
	}
	for name, c := range cases {
		throttle := &resyncThrottle{}
		throttle.merge(c.first)
		throttle.merge(c.second)
		diff := cmp.Diff(c.want.Parents, throttle.pending.Parents)
		if diff != "" || selectorText(throttle.pending) != selectorText(&c.want) {
			t.Errorf("%s: got the selector %q, want %q; parents (-want +got):\n%s", name, selectorText(throttle.pending),
				selectorText(&c.want), diff)
		}
	}
}
