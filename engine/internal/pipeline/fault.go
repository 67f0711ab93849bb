package pipeline

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Synced is the condition of a parent that reports whether its last sync failed.
const Synced = plan.Synced

// reportedFault is the fault that the parent's condition reports.
type reportedFault struct {
	// key identifies the fault (see faultKey); empty after a sync without a fault. Generation is
	// the parent's at which it was reported.
	key        string
	generation int64
	// resourceVersion is the parent's after the last write of such a condition.
	resourceVersion string
}

// reportFault reports a fault in the log, in an Event of the parent and in its condition. The
// condition is written if the fault differs from the reported one; the Event is repeated with every
// try, and the API server counts it. A parent gets no condition if its status is not this
// controller's.
func (r *run) reportFault(ctx context.Context, f fault, err error) {
	if !f.known {
		klog.FromContext(ctx).Error(loggable(err), "sync failed", "reason", f.reason)
	}
	if r.parent == nil {
		return
	}
	c := faultCondition(f.reason, r.ofPart(err))
	if !f.known {
		r.Events.WarningUnlogged(r.parent, "SyncError", c.Message)
	}
	if !r.ownsStatus() || r.isReported(f.reason, err) {
		return
	}
	written, condErr := r.Status.SetCondition(ctx, r.Clock, r.resource, r.parent, c)
	r.observeStatus(r.parent, written, nil) // of an error, the log has the line
	switch {
	case errors.Is(condErr, act.ErrStale): // the retry reports it
	case condErr != nil:
		klog.FromContext(ctx).Error(condErr, "condition not written")
		if apierrors.IsInvalid(condErr) { // and never will be
			r.setReported(f.reason, err)
		}
	default:
		r.setReported(f.reason, err)
	}
	if written != nil {
		r.state.fault.resourceVersion = written.ResourceVersion()
	}
}

// ofPart returns an error that names the part of the parent that it is about, if it is about one.
func (r *run) ofPart(err error) error {
	if !r.isPart() {
		return err
	}
	return fmt.Errorf("%s: %w", r.item.Key.Part, err)
}

// reportFaultInStatus writes the hook's status after a child could not be written, with the fault's
// condition in it: the status may explain the fault to the user. The rest of a report waits for
// a sync without a fault.
func (r *run) reportFaultInStatus(
	ctx context.Context, observed *plan.Observed, desired *plan.Desired, err error,
) error {
	f := classify(err)
	if !r.ownsStatus() || desired.Status == nil || f.retry == quiet || f.retry == later || f.retry == pause {
		return nil
	}
	ctx, span := r.Tracer.Start(ctx, "report")
	defer span.End()
	desired.Conditions = append(desired.Conditions, faultCondition(f.reason, err))
	if writeErr := r.writeStatus(ctx, observed.Parent, desired); writeErr != nil {
		return writeErr
	}
	r.setReported(f.reason, err)
	r.state.fault.resourceVersion = r.parent.ResourceVersion()
	return nil
}

// isReported reports whether the parent's condition reports a fault already.
func (r *run) isReported(reason string, err error) bool {
	f := r.state.fault
	return f.key == faultKey(reason, err) && f.generation == report.Generation(r.resource, r.parent)
}

// setReported notes that the parent's condition reports a fault.
func (r *run) setReported(reason string, err error) {
	r.state.fault.key = faultKey(reason, err)
	r.state.fault.generation = report.Generation(r.resource, r.parent)
}

// isOnlyCause reports whether the only cause of a sync is the condition that the last one
// wrote to report a fault. It must not cut the backoff short. A hook's own status is a cause,
// because a hook may continue from it.
func (f reportedFault) isOnlyCause(item queue.Item[hook.Key]) bool {
	if f.resourceVersion == "" || item.Count != 1 {
		return false
	}
	cause := item.Causes[0]
	return cause.Kind == queue.CauseObject && cause.Ref == item.Key.Parent && cause.ResourceVersion == f.resourceVersion
}

// faultCondition returns the condition that reports a fault.
func faultCondition(reason string, err error) hook.Condition {
	return hook.Condition{
		Type:    Synced,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: report.Shorten("Sync error: "+err.Error(), report.MaxMessage),
	}
}

// volatile matches ports and times in a message. They differ with every try, so they do not make a
// fault another one.
var volatile = regexp.MustCompile(`:\d+|\b\d+(\.\d+)?(ns|µs|ms|s|m|h)\b`)

// faultKey identifies a fault. It is bounded, because it is kept for each parent.
func faultKey(reason string, err error) string {
	return reason + " " + volatile.ReplaceAllString(report.Shorten(err.Error(), report.MaxMessage), "")
}

// maxLogged bounds an error in the log, in bytes.
const maxLogged = 16 << 10

// loggable returns an error with a bounded text: hooks provide parts of it.
func loggable(err error) error {
	if text := err.Error(); len(text) > maxLogged {
		return errors.New(report.Shorten(text, maxLogged))
	}
	return err
}
