package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"
)

// The conditions that every actor sets on its objects.
const (
	// ConditionSynced is True when Observe has returned no further action, and False with the fault
	// or with the reason to wait.
	ConditionSynced = plan.Synced
	// ConditionDependenciesMet is False with the missing dependencies. Only objects with dependencies
	// have it.
	ConditionDependenciesMet = plan.DependenciesMet
)

// The reasons of the conditions.
const (
	reasonSynced     = plan.ReasonSynced
	reasonMet        = "AllMet"
	reasonWaiting    = "WaitingForDependencies"
	reasonDependents = "DependentsExist"
	reasonFinalizing = "Finalizing"
	reasonActions    = "ActionsRemain"
)

func synced() report.Condition {
	return report.Condition{
		Type: ConditionSynced, Status: metav1.ConditionTrue, Reason: reasonSynced,
		Message: "the desired state is reached",
	}
}

func notSynced(reason, message string) report.Condition {
	return report.Condition{Type: ConditionSynced, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// take makes an answer of the API server the object of the reconcile.
func (r *run[T]) take(observed *object.Object) error {
	target := newObject[T]()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(observed.Raw(), target); err != nil {
		return fmt.Errorf("%s as %s: %w", observed.Ref(), r.of, err)
	}
	before, err := statusOf(target)
	if err != nil {
		return fmt.Errorf("%s: %w", observed.Ref(), err)
	}
	r.observed = observed
	r.target = target
	r.before = before
	return nil
}

// statusOf returns the status of a Go value as JSON values.
func statusOf(o Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	all, err := object.DecodeMap(data)
	if err != nil {
		return nil, err
	}
	status, _ := all["status"].(map[string]any)
	return status, nil
}

// save writes what the actor has changed in the status, together with conditions. It writes nothing
// if nothing differs.
func (r *run[T]) save(ctx context.Context, conditions ...report.Condition) error {
	after, err := statusOf(r.target)
	if err != nil {
		return fmt.Errorf("status of %s: %w", r.observed.Ref(), err)
	}
	if merge.Equal(anyMap(r.before), anyMap(after)) && len(conditions) == 0 {
		return nil
	}
	before := r.before
	if r.target.GetResourceVersion() != r.observed.ResourceVersion() { // the actor has written it
		if exists, err := r.load(); err != nil || !exists {
			return err
		}
	}
	desired, err := r.desiredStatus(before, after, conditions)
	if err != nil {
		return err
	}
	written, err := r.status.Replace(ctx, r.own().resource, r.observed, desired)
	if err != nil || written == nil {
		return err
	}
	return r.take(written)
}

func anyMap(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// desiredStatus returns the observed status with the fields that the actor has changed from before
// to after, and with conditions. Fields that the Go type does not have stay.
func (r *run[T]) desiredStatus(before, after map[string]any, conditions []report.Condition) (map[string]any, error) {
	status, err := report.StatusOf(r.observed)
	if err != nil {
		return nil, err
	}
	mergeChanges(status, before, after)
	for _, c := range conditions {
		if err := report.Include(status, r.host.Clock, r.own().resource, r.observed, c); err != nil {
			return nil, err
		}
	}
	return status, nil
}

// mergeChanges applies to status, in place, the fields that differ between before and after.
func mergeChanges(status, before, after map[string]any) {
	for name, value := range after {
		if old, had := before[name]; !had || !merge.Equal(old, value) {
			status[name] = value
		}
	}
	for name := range maps.Keys(before) {
		if _, has := after[name]; !has {
			delete(status, name)
		}
	}
}

// removeCondition removes a condition that does not concern the object any more.
func (r *run[T]) removeCondition(ctx context.Context, name string) error {
	if !report.HasAny(r.observed, []string{name}) {
		return nil
	}
	status, err := report.StatusOf(r.observed)
	if err != nil {
		return err
	}
	report.Remove(status, name)
	written, err := r.status.Replace(ctx, r.own().resource, r.observed, status)
	if err != nil || written == nil {
		return err
	}
	return r.take(written)
}
