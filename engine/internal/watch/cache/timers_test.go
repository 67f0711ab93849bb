package cache

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/utils/clock"
)

// timers is a clock that keeps the timers that have been started and not stopped.
type timers struct {
	clock.RealClock
	open []*timer
}

type timer struct {
	clock.Timer
	of   *timers
	wait time.Duration
	f    func()
}

func (c *timers) AfterFunc(wait time.Duration, f func()) clock.Timer {
	t := &timer{of: c, wait: wait, f: f}
	c.open = append(c.open, t)
	return t
}

func (t *timer) Stop() bool {
	t.of.open = slices.DeleteFunc(t.of.open, func(other *timer) bool { return other == t })
	return true
}

// fire ends the waits of a length.
func (c *timers) fire(wait time.Duration) {
	for _, t := range slices.Clone(c.open) {
		if t.wait == wait {
			t.f()
		}
	}
}

// TestWatchThatIsAcceptedAndFails does so for as long as a conversion webhook is broken, for
// instance. It leaves no timers behind.
func TestWatchThatIsAcceptedAndFails(t *testing.T) {
	c := &timers{}
	h := newHealth(object.Resource{Plural: "pages"}, c, time.Hour)
	for range 1000 {
		h.failed(errors.New("broken"))
		h.accepted()
		h.accepted()
	}
	if len(c.open) > 2 {
		t.Errorf("%d timers", len(c.open))
	}
	c.fire(settle)
	if _, err := h.last(); err != nil {
		t.Errorf("the last watch has stayed open, and the trouble is still %v", err)
	}
	h.failed(errors.New("broken"))
	if len(c.open) > 1 {
		t.Errorf("%d timers at the beginning of another trouble", len(c.open))
	}
}
