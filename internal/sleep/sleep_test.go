package sleep_test

import (
	"testing"
	"time"

	"github.com/hookloop/hookloop/internal/sleep"
	clocktesting "k8s.io/utils/clock/testing"
)

func TestFor(t *testing.T) {
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	result := make(chan bool)
	done := make(chan struct{})
	start := func() {
		go func() { result <- sleep.For(done, c, time.Second) }()
		for !c.HasWaiters() {
		}
	}
	start()
	c.Step(time.Second)
	if !<-result {
		t.Error("the wait was cut short")
	}
	start()
	close(done)
	if <-result {
		t.Error("the wait was not cut short")
	}
	if c.HasWaiters() {
		t.Error("the timer is left")
	}
}
