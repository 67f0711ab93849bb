package pipeline

import (
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// optional reports whether a condition is left out of a status that cannot hold it.
func optional(name string) bool { return name == plan.Synced || slices.Contains(plan.Notices, name) }

// removeOptional removes the optional conditions from a status, and reports whether there were any.
func removeOptional(status map[string]any) bool {
	removed := report.Remove(status, plan.Synced)
	for _, name := range plan.Notices {
		removed = report.Remove(status, name) || removed
	}
	return removed
}

// includeConditions puts the conditions of a sync into the desired status. It removes conditions of
// the engine that do not hold: hooks copy them from the parent in the request.
func (r *run) includeConditions(parent *object.Object, desired *plan.Desired) error {
	_, refused := r.rejectsConditions.Load(r.resource)
	for _, c := range desired.Conditions {
		if optional(c.Type) && (!report.CanHold(desired.Status) || refused) {
			continue // the hook uses the field for something else, or the schema rejects it
		}
		if err := report.Include(desired.Status, r.Clock, r.resource, parent, c); err != nil {
			return err
		}
	}
	if !r.ownsStatus() || !report.CanHold(desired.Status) {
		return nil
	}
	reported := func(name string) bool {
		return slices.ContainsFunc(desired.Conditions, func(c hook.Condition) bool { return c.Type == name })
	}
	if !reported(plan.Updated) { // with another reason it is the hook's (compatibility)
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

// markSynced puts the condition Synced=True into the desired status. A parent that does not have
// the condition gets it only together with another change: after a swap from Metacontroller,
// converged parents are not written.
func (r *run) markSynced(parent *object.Object, desired *plan.Desired) error {
	if !report.HasAny(parent, []string{plan.Synced}) {
		report.Remove(desired.Status, plan.Synced)
		if _, refused := r.rejectsConditions.Load(r.resource); refused || !desired.MarkSynced {
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
