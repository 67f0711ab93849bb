package supervisor

import (
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// Triggers of one controller: a hook may ask at this rate, and in a burst of this size.
const (
	triggersPerSecond = 10
	triggersBurst     = 50
)

// trigger brings parents of a controller to its queue because a hook asks for it. Hooks are opened before the controller is made, and may
// speak at once: until run is set, there are no parents.
type trigger struct {
	controller string
	log        klog.Logger
	limit      *rate.Limiter
	run        atomic.Pointer[controller.Controller]
	// forget drops what answers about a parent have brought; it is set before run.
	forget func(object.Key)
}

func newTrigger(c *config, log klog.Logger) *trigger {
	return &trigger{controller: c.name(), log: log, limit: rate.NewLimiter(triggersPerSecond, triggersBurst)}
}

// ask is the port's TriggerFunc.
func (t *trigger) ask(wish hook.Trigger) (int, error) {
	if !wish.Background && !t.limit.Allow() {
		return 0, hook.ErrTooManyTriggers
	}
	run := t.run.Load()
	if run == nil {
		return 0, nil
	}
	priority := queue.Child
	if wish.Background {
		priority = queue.Resync
	}
	match := matching(wish)
	if wish.Renewed {
		match = t.renewing(match)
	}
	parents := run.Trigger(match, priority, wish.Reason)
	t.log.Info("parents are synced by a trigger", "controller", t.controller, "parents", parents, "reason", wish.Reason)
	return parents, nil
}

// renewing forgets what was learnt of each parent that matches, before it is synced.
func (t *trigger) renewing(match func(*object.Object) bool) func(*object.Object) bool {
	return func(o *object.Object) bool {
		if match != nil && !match(o) {
			return false
		}
		t.forget(object.Key{Parent: o.Ref()})
		return true
	}
}

// matching says which parents are meant; nil for all.
func matching(wish hook.Trigger) func(*object.Object) bool {
	if len(wish.Parents) > 0 {
		named := make(map[hook.ParentName]bool, len(wish.Parents))
		for _, p := range wish.Parents {
			named[p] = true
		}
		return func(o *object.Object) bool { return named[hook.ParentName{Namespace: o.Namespace(), Name: o.Name()}] }
	}
	if wish.Selector == nil || wish.Selector.Empty() {
		return nil
	}
	return func(o *object.Object) bool { return wish.Selector.Matches(labels.Set(o.Labels())) }
}
