package pipeline

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/plan"
)

// report writes the parent: labels and annotations, status, or the removal of the finalizer. If a
// sync changes the metadata, the next sync writes the status, so that each writes the parent at
// most once. The metadata has not changed if the server reverts it; then there is no next sync, and
// this one writes the status. The sync that removes the finalizer is the last. The sync of a part
// writes nothing of the parent.
func (r *run) report(ctx context.Context, observed *plan.Observed, desired *plan.Desired, result plan.Result) error {
	ctx, span := r.Tracer.Start(ctx, "report")
	defer span.End()
	r.resync = desired.ResyncAfter
	if r.tally.spared > 0 {
		r.resync = time.Millisecond // there is no event of a write that was not needed, and a rolling update may wait for it
	}
	r.tally.converged = result.Len() == 0 && result.Pending == 0 && result.Waiting == 0 && len(observed.Prepare) == 0 &&
		!desired.InProgress
	if r.isPart() {
		return nil
	}
	last := desired.RemoveFinalizer != ""
	if !last {
		written, err := r.patchMetadata(ctx, observed.Parent, desired)
		if err != nil || written != nil && written.ResourceVersion() != observed.Parent.ResourceVersion() {
			return err
		}
	}
	if !last || !r.ownsStatus() {
		if err := r.reportStatus(ctx, observed.Parent, desired); err != nil {
			return err
		}
	}
	if !last {
		return nil
	}
	_, err := r.patchMetadata(ctx, r.parent, desired)
	return err
}
