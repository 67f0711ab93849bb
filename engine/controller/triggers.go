package controller

import (
	"context"
	"errors"

	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
)

// triggers is the Source of Triggers.
type triggers struct{ worker string }

// Triggers returns a Source of the requests that others send to the process's gateway
// (server.Config.Gateway) by the method Trigger for a worker: they name objects or select them by
// labels. The gateway authenticates callers and asks the API server for their right to serve the
// worker.
func Triggers(worker string) Source { return &triggers{worker} }

// check implements checkedSource.
func (t *triggers) check() error {
	if t.worker == "" {
		return errors.New("triggers: the worker is empty, expected a name")
	}
	return nil
}

func (t *triggers) run(ctx context.Context, s *sourcing) error {
	if s.host.Triggers == nil {
		s.log().Error(nil, "no triggers: the process has no gateway; expected server.Config.Gateway", "worker", t.worker)
		<-ctx.Done()
		return nil
	}
	cancel := s.host.Triggers(s.controller, t.worker, func(r host.Trigger) (int, error) {
		priority := queue.Child
		if r.LowPriority {
			priority = queue.Resync
		}
		return s.trigger(r.Match, priority, r.Reason)
	})
	defer cancel()
	<-ctx.Done()
	return nil
}
