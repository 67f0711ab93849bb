package supervisor

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"golang.org/x/time/rate"
	"k8s.io/klog/v2"
)

// The rate and the burst of triggers that one controller accepts.
const (
	triggersPerSecond = 10
	triggersBurst     = 50
)

// trigger enqueues parents of a controller on request of a hook. Hooks are opened before the
// controller is made, and may send a trigger immediately: there are no parents until run is set.
type trigger struct {
	controller string
	log        klog.Logger
	limit      *rate.Limiter
	run        atomic.Pointer[loop.Loop[hook.Key]]
	// invalidate discards the customize answers about a parent; it is set before run.
	invalidate func(hook.Key)

	mu sync.Mutex // guards missed
	// missed merges the low-priority triggers that came while the parents were not known; nil for
	// none.
	missed *hook.Trigger
}

func newTrigger(c *config, log klog.Logger) *trigger {
	return &trigger{controller: c.name(), log: log, limit: rate.NewLimiter(triggersPerSecond, triggersBurst)}
}

// ask implements hook.TriggerFunc.
func (t *trigger) ask(req hook.Trigger) (int, error) {
	if !req.LowPriority && !t.limit.Allow() {
		return 0, hook.ErrTooManyTriggers
	}
	run := t.run.Load()
	if run == nil {
		return 0, nil
	}
	priority := queue.Child
	if req.LowPriority {
		priority = queue.Resync
	}
	match := req.Match()
	if req.Invalidate {
		match = t.renewing(match)
	}
	parents, err := run.Trigger(match, priority, req.Reason)
	if err != nil {
		return parents, t.miss(req, err)
	}
	t.log.Info("parents are synced by a trigger", "controller", t.controller, "parents", parents, "reason", req.Reason)
	return parents, nil
}

// miss keeps a trigger that no one repeats until the parents are known again. Before the controller
// runs, none is kept: the first list enqueues all parents.
func (t *trigger) miss(req hook.Trigger, err error) error {
	var unknown *view.Error
	if !errors.As(err, &unknown) {
		return err
	}
	if unknown.State == view.Unwatched {
		return nil
	}
	if !req.LowPriority {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	req.Parents = nil
	req.Selector = nil // one trigger for all that are missed: it is about all parents
	req.Invalidate = req.Invalidate || t.missed != nil && t.missed.Invalidate
	t.missed = &req
	return nil
}

// replay repeats the missed triggers, and keeps them if they are missed again.
func (t *trigger) replay() {
	t.mu.Lock()
	missed := t.missed
	t.missed = nil
	t.mu.Unlock()
	if missed == nil {
		return
	}
	if _, err := t.ask(*missed); err != nil {
		t.log.Error(err, "parents are not synced by a trigger", "controller", t.controller, "reason", missed.Reason)
	}
}

// renewing returns a match that also invalidates the customize answers of each matching parent.
func (t *trigger) renewing(match func(*object.Object) bool) func(*object.Object) bool {
	return func(o *object.Object) bool {
		if match != nil && !match(o) {
			return false
		}
		t.invalidate(hook.ParentKey(o.Ref()))
		return true
	}
}
