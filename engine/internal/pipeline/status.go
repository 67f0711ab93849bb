package pipeline

import (
	"context"
	"fmt"
	"hash/maphash"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
)

// reachedStatus remembers the status that was last desired of the parent, and the status that the
// parent had after it was written or found equal. The zero value remembers nothing.
type reachedStatus struct {
	// desired is a hash (statusHash).
	desired uint64
	// answer is a hash of the parent's status as JSON; that differs from the desired one if the
	// server drops or changes values.
	answer uint64
	known  bool
}

// holds reports whether the desired status was written or found equal, and the parent's status has
// not changed since.
func (s *reachedStatus) holds(parent *object.Object, desired uint64) bool {
	return s.known && s.desired == desired && s.answer == presentStatus(parent)
}

var statusSeed = maphash.MakeSeed()

// presentStatus returns a hash of a parent's status as JSON.
func presentStatus(parent *object.Object) uint64 {
	present, _ := parent.Field("status")
	return maphash.Bytes(statusSeed, present)
}

// set notes that parent has the desired status, as far as the server accepts it.
func (s *reachedStatus) set(parent *object.Object, desired uint64) {
	*s = reachedStatus{desired: desired, answer: presentStatus(parent), known: true}
}

// statusHash hashes a desired status and the conditions that are put into it, which name the
// generation that they are about. The time in a condition does not count, nor do the ports and
// times in the message of a fault: the status would be written with every sync if the server keeps
// no conditions, or with every try.
func statusHash(d *plan.Desired, generation int64) uint64 {
	desired := map[string]any{"value": d.Status}
	for _, c := range d.Conditions {
		message := c.Message
		if c.Type == plan.Synced {
			message = volatile.ReplaceAllString(message, "")
		}
		desired["condition "+c.Type] = map[string]any{
			"status": string(c.Status), "reason": c.Reason, "message": message, "generation": generation,
		}
	}
	return plan.StableHash(desired)
}

// reportStatus writes the parent's status after a sync without a fault. If the hook answered no
// status, it only removes conditions of the engine that no longer hold.
func (r *run) reportStatus(ctx context.Context, parent *object.Object, desired *plan.Desired) error {
	r.tally.answersStatus = !r.OwnsStatus && desired.Status != nil
	if desired.StatusLater {
		return nil
	}
	if desired.Status == nil {
		if !r.ownsStatus() || !report.HasAny(parent, plan.EngineConditions) {
			return nil
		}
		var err error
		desired.Status, err = report.StatusOf(parent)
		if err != nil {
			return err
		}
	}
	return r.writeStatus(ctx, parent, desired)
}

// writeStatus replaces the parent's status by the desired one, unless that was tried before and
// nothing has changed since.
func (r *run) writeStatus(ctx context.Context, parent *object.Object, desired *plan.Desired) error {
	hash := statusHash(desired, report.Generation(r.resource, parent))
	if r.state.status.holds(parent, hash) {
		return nil
	}
	if err := r.includeConditions(parent, desired); err != nil {
		return r.invalid(&plan.AnswerError{Index: -1, Item: "status", Problem: err.Error()})
	}
	fields, err := r.checkStatusCircuit(ctx, parent, desired.Status)
	if err != nil {
		return err
	}
	written, err := r.replaceStatus(ctx, parent, desired.Status)
	r.observeStatus(parent, written, err)
	if err != nil {
		return err
	}
	if written != nil {
		r.tally.writes++
		r.countRewrites(fields)
		parent, r.parent = written, written
		r.dropped(ctx, written, desired.Status)
	}
	r.state.status.set(parent, hash)
	return nil
}

// replaceStatus writes a status. If the API server rejects it as invalid, it is written without the
// optional conditions: the schema of a parent need not allow conditions that its hook does not
// know.
func (r *run) replaceStatus(ctx context.Context, parent *object.Object, status map[string]any) (*object.Object, error) {
	written, err := r.Status.Replace(ctx, r.resource, parent, status)
	if !apierrors.IsInvalid(err) || !removeOptional(status) {
		return written, err
	}
	klog.FromContext(ctx).Info("status is written without conditions with which the API server refuses it",
		"cause", err.Error())
	written, err = r.Status.Replace(ctx, r.resource, parent, status)
	if err == nil {
		r.rejectsConditions.Store(r.resource, true)
	}
	return written, err
}

// dropped records an Event on the controller if its parents keep no status (compatibility: Events).
func (r *run) dropped(ctx context.Context, written *object.Object, status map[string]any) {
	if _, kept := written.Field("status"); kept || r.resource.HasStatus || len(status) == 0 {
		return
	}
	r.tally.statusDropped = true
	r.Events.Warning(ctx, r.Controller, "SyncError", fmt.Sprintf("Sync error: parent resource %s does not have "+
		"subresource 'Status' enabled, and no field status: what the hook answers is lost", r.resource))
}
