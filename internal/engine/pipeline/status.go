package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// reportStatus writes the parent's status after a sync without a fault. Without an answered status
// it only takes back conditions of the engine's own that no longer hold.
func (r *run) reportStatus(ctx context.Context, parent *object.Object, desired *plan.Desired) error {
	r.tally.answersStatus = !r.OwnsStatus && desired.Status != nil
	if desired.Status == nil {
		if !r.OwnsStatus || !report.HasAny(parent, plan.EngineConditions) {
			return nil
		}
		var err error
		if desired.Status, err = report.StatusOf(parent); err != nil {
			return err
		}
	}
	return r.writeStatus(ctx, parent, desired)
}

// reportBesides writes the hook's status although a child could not be written, with the fault's
// condition in it: the status may explain to the user what is going on. All else that a report does
// waits for a sync without a fault.
func (r *run) reportBesides(ctx context.Context, observed *plan.Observed, desired *plan.Desired, fault error) error {
	f := classify(fault)
	if !r.OwnsStatus || desired.Status == nil || f.retry == quiet || f.retry == later || f.retry == pause {
		return nil
	}
	ctx, span := r.Tracer.Start(ctx, "report")
	defer span.End()
	desired.Conditions = append(desired.Conditions, faultCondition(f.reason, fault))
	if err := r.writeStatus(ctx, observed.Parent, desired); err != nil {
		return err
	}
	r.recordFault(f.reason, fault)
	r.state.faultVersion = r.parent.ResourceVersion()
	return nil
}

// recordFault remembers that a fault is on record on the parent.
func (r *run) recordFault(reason string, err error) {
	r.state.faultReported, r.state.faultGeneration = faultText(reason, err), report.Generation(r.resource, r.parent)
}

// writeStatus makes the desired status the parent's, unless that has been tried and nothing has
// changed since. The time in a condition does not count: if the server keeps no conditions, each
// sync would have a new one.
func (r *run) writeStatus(ctx context.Context, parent *object.Object, desired *plan.Desired) error {
	hash := statusHash(desired, report.Generation(r.resource, parent))
	if r.state.statusTried(parent, hash) {
		return nil
	}
	if err := r.conditions(parent, desired); err != nil {
		return r.invalid(&plan.AnswerError{Index: -1, Item: "status", Problem: err.Error()})
	}
	fields, err := r.brakeStatus(ctx, parent, desired.Status)
	if err != nil {
		return err
	}
	written, err := r.replaceStatus(ctx, parent, desired.Status)
	if err != nil {
		return err
	}
	if written != nil {
		r.tally.writes++
		r.rewrote(fields)
		parent, r.parent = written, written
		r.dropped(ctx, written, desired.Status)
	}
	r.state.triedStatus(parent, hash)
	return nil
}

// replaceStatus writes a status. If the API server refuses it as invalid, it is written without the
// condition Synced and notices: the schema of a parent need not allow for conditions that its hook
// does not know.
func (r *run) replaceStatus(ctx context.Context, parent *object.Object, status map[string]any) (*object.Object, error) {
	written, err := r.Status.Replace(ctx, r.resource, parent, status)
	if !apierrors.IsInvalid(err) || !removeOptional(status) {
		return written, err
	}
	klog.FromContext(ctx).Info("status is written without conditions with which the API server refuses it",
		"cause", err.Error())
	if written, err = r.Status.Replace(ctx, r.resource, parent, status); err == nil {
		r.refusesSynced.Store(r.resource, true)
	}
	return written, err
}

// optional reports whether a condition of a type is left out of a status that cannot hold it.
func optional(name string) bool { return name == plan.Synced || slices.Contains(plan.Notices, name) }

// removeOptional removes the optional conditions from a status, and reports whether there were any.
func removeOptional(status map[string]any) bool {
	removed := report.Remove(status, plan.Synced)
	for _, name := range plan.Notices {
		removed = report.Remove(status, name) || removed
	}
	return removed
}

// conditions puts the conditions of a sync into the status that is to be written, and removes those
// of the engine's own that do not hold: hooks copy them from the parent that they are shown.
func (r *run) conditions(parent *object.Object, desired *plan.Desired) error {
	_, refused := r.refusesSynced.Load(r.resource)
	for _, c := range desired.Conditions {
		if optional(c.Type) && !report.CanHold(desired.Status) || slices.Contains(plan.Notices, c.Type) && refused {
			continue // the hook uses the field for something else, or the schema refuses it
		}
		if err := report.Include(desired.Status, r.Clock, r.resource, parent, c); err != nil {
			return err
		}
	}
	if !r.OwnsStatus || !report.CanHold(desired.Status) {
		return nil
	}
	reported := func(name string) bool {
		return slices.ContainsFunc(desired.Conditions, func(c hook.Condition) bool { return c.Type == name })
	}
	if !reported(plan.Updated) { // with another reason it is the hook's, as with Metacontroller
		report.Remove(desired.Status, plan.Updated, plan.UpdatedReasons...)
	}
	for _, name := range append([]string{plan.DependenciesMet}, plan.Notices...) {
		if !reported(name) {
			report.Remove(desired.Status, name)
		}
	}
	if reported(plan.Synced) {
		return nil
	}
	return r.markSynced(parent, desired)
}

// markSynced puts the condition Synced=True into a status. A parent that has no such condition gets
// it together with another change only: after a swap from Metacontroller, parents at rest are not
// written.
func (r *run) markSynced(parent *object.Object, desired *plan.Desired) error {
	if !report.HasAny(parent, []string{plan.Synced}) {
		report.Remove(desired.Status, plan.Synced)
		if _, refused := r.refusesSynced.Load(r.resource); refused || !desired.MarkSynced {
			return nil
		}
		if same, err := report.Same(parent, desired.Status); same || err != nil {
			return err
		}
	}
	return report.Include(desired.Status, r.Clock, r.resource, parent, hook.Condition{
		Type: plan.Synced, Status: metav1.ConditionTrue, Reason: plan.ReasonSynced, Message: "the last sync had no fault",
	})
}

// dropped reports on the controller that its parents keep no status (compatibility: Events).
func (r *run) dropped(ctx context.Context, written *object.Object, status map[string]any) {
	if _, kept := written.Field("status"); kept || r.resource.HasStatus || len(status) == 0 {
		return
	}
	r.tally.statusDropped = true
	r.Events.Warning(ctx, r.Controller, "SyncError", fmt.Sprintf(
		"Sync error: parent resource %s does not have subresource 'Status' enabled, and no field status: what the hook answers is lost",
		r.resource,
	))
}

// reportFault puts a fault on record where the user looks: an Event and a condition on the parent, and the
// log. The condition is written when it is news; the Event is repeated with every try, and counted
// by the API server. The status of an object that is only decorated belongs to somebody else, and
// gets no condition.
func (r *run) reportFault(ctx context.Context, f fault, err error) {
	reason := f.reason
	if !f.known {
		klog.FromContext(ctx).Error(loggable(err), "sync failed", "reason", reason)
	}
	if r.parent == nil {
		return
	}
	c := faultCondition(reason, err)
	if !f.known {
		r.Events.WarningUnlogged(r.parent, "SyncError", c.Message)
	}
	m := r.state
	if !r.OwnsStatus || m.faultReported == faultText(reason, err) && m.faultGeneration == report.Generation(r.resource, r.parent) {
		return
	}
	written, condErr := r.Status.SetCondition(ctx, r.Clock, r.resource, r.parent, c)
	switch {
	case errors.Is(condErr, act.ErrStale): // said by the retry
	case condErr != nil:
		klog.FromContext(ctx).Error(condErr, "condition not written")
		if apierrors.IsInvalid(condErr) { // and never will be
			r.recordFault(reason, err)
		}
	default:
		r.recordFault(reason, err)
	}
	if written != nil {
		m.faultVersion = written.ResourceVersion()
	}
}
