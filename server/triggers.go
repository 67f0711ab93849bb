package server

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/host"
	"golang.org/x/time/rate"
)

// The rate and the burst of triggers that one controller in Go accepts from a worker.
const (
	triggersPerSecond = 10
	triggersBurst     = 50
)

// goController is the kind of controllers in Go in requests to the gateway.
const goController = "Controller"

// subscribe has a controller in Go get the triggers of a worker.
func (g gatewayServer) subscribe(controller, worker string, f func(host.Trigger) (int, error)) (cancel func()) {
	limit := rate.NewLimiter(triggersPerSecond, triggersBurst)
	return g.Subscribe(goController, controller, worker, func(t hook.Trigger) (int, error) {
		if !t.LowPriority && !limit.Allow() {
			return 0, hook.ErrTooManyTriggers
		}
		return f(host.Trigger{Match: t.Match(), LowPriority: t.LowPriority, Reason: t.Reason})
	})
}
