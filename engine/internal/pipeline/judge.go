package pipeline

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"k8s.io/klog/v2"
)

// verdict is the end of a sync.
type verdict struct {
	result string
	next   loop.Result
	retry  error
	// fault identifies the fault that was reported; empty for none.
	fault string
}

// judge turns the sync's error into Event, condition and retry. Without an error it ends the sync.
func (r *run) judge(ctx context.Context, err error) verdict {
	probed := r.reach(err)
	if err == nil {
		return r.good()
	}
	f := classify(err)
	v := verdict{result: f.reason}
	if f.retry == quiet || f.retry == later {
		klog.FromContext(ctx).V(1).Info("sync postponed", "reason", f.reason, "cause", err.Error())
	} else {
		v.fault = faultKey(f.reason, err)
		r.reportFault(ctx, f, err)
	}
	switch f.retry {
	case later, pause:
		v.next = loop.Result{RequeueAfter: f.after, Priority: queue.Child}
		return v
	case onChange:
		return v
	case backoff, quiet:
	}
	if probed > 0 {
		v.next = loop.Result{RequeueAfter: probed, Priority: queue.Child, Skipped: true}
		return v
	}
	v.retry = err
	return v
}

// reach notes whether the hook was reached. It returns how long the parent need not be synced
// again, because probes are made; 0 leaves it to its own backoff.
func (r *run) reach(err error) time.Duration {
	if r.Reach == nil || !r.asked {
		return 0
	}
	var e *hook.Error
	if errors.As(err, &e) && e.Reason == "" && (e.Kind == hook.Unreachable || e.Kind == hook.TimedOut) {
		name := r.hook
		if strings.HasPrefix(e.Hook, string(hook.Customize)+" ") {
			name = e.Hook
		}
		return r.Reach.Missed(r.item.Key, name)
	}
	if hook.ErrorKindOf(err) != hook.Unreachable && !errors.Is(err, context.Canceled) {
		r.Reach.Reached(r.item.Key, r.hook)
	}
	return 0
}

// good ends a sync without a fault.
func (r *run) good() verdict {
	r.state.fault.key = ""
	r.closeCircuit()
	if r.tally.gone {
		r.forget(r.item.Key, r.state.uid)
		return verdict{result: Gone}
	}
	result := "changed"
	if r.tally.writes == 0 {
		result = "converged"
	}
	return verdict{result: result, next: loop.Result{RequeueAfter: r.resync, Priority: queue.Resync}}
}
