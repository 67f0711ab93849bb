package supervisor

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// rival is another controller that writes the status of the same parents.
type rival struct {
	ref      object.Ref
	resource schema.GroupResource
}

// conflict returns the condition of a running controller with a warning in it if another one writes
// the status of the same parents: each overwrites the other's. It stops neither of them. Both are
// looked at again when that changes.
func (s *Supervisor) conflict(
	ctx context.Context,
	key object.Ref,
	o *object.Object,
	c hook.Condition,
) hook.Condition {
	s.mu.Lock()
	i := s.running[key]
	var before, now []rival
	if i != nil {
		before = i.rivals
		now = s.rivalsOf(key, i)
		i.rivals = now
	}
	s.mu.Unlock()
	var message string
	if len(now) > 0 {
		message = fmt.Sprintf(
			"%s also writes the status of %s that this controller selects, so that each overwrites the other's; "+
				"expected one controller, or label selectors that no parent matches both of",
			now[0].ref,
			now[0].resource,
		)
	}
	if !slices.Equal(before, now) {
		s.nudgeRivals(slices.Concat(before, now))
		if len(now) > 0 {
			s.Events.Warning(ctx, o, v1alpha1.ReasonParentConflict, message)
		}
	}
	if len(now) > 0 && c.Status == metav1.ConditionTrue {
		c.Reason = v1alpha1.ReasonParentConflict
		c.Message = "the controller is running; " + message
	}
	return c
}

// nudgeRivals enqueues controllers because their overlap with another one has changed.
func (s *Supervisor) nudgeRivals(rivals []rival) {
	keys := map[object.Ref]bool{}
	for _, r := range rivals {
		keys[r.ref] = true
	}
	for key := range keys {
		s.nudge(key)
	}
}

// rivalsOf finds the rivals of a running controller, in the order of their names. The caller holds
// mu.
func (s *Supervisor) rivalsOf(key object.Ref, i *instance) []rival {
	var rivals []rival
	for _, other := range slices.SortedFunc(maps.Keys(s.running), compareKeys) {
		if other == key {
			continue
		}
		if r, found := shared(i, s.running[other]); found {
			rivals = append(rivals, rival{ref: other, resource: r})
		}
	}
	return rivals
}

func compareKeys(a, b object.Ref) int {
	return slices.Compare([]string{a.GVK.Kind, a.Name}, []string{b.GVK.Kind, b.Name})
}

// shared returns a resource of which two controllers may select the same objects, and both write
// their status. Versions of a resource are the same objects.
func shared(a, b *instance) (schema.GroupResource, bool) {
	for n, r := range a.config.found.parents {
		for m, other := range b.config.found.parents {
			same := r.GVR().GroupResource() == other.GVR().GroupResource() && a.writesStatus(r) && b.writesStatus(other)
			if same && a.config.parents[n].selection.overlaps(b.config.parents[m].selection) {
				return r.GVR().GroupResource(), true
			}
		}
	}
	return schema.GroupResource{}, false
}

// writesStatus reports whether the controller writes the status of parents of a resource: a
// composite controller does, a map controller if it reports one, and a decorator controller if its
// hook has answered one.
func (i *instance) writesStatus(r object.Resource) bool {
	if i.config.kind.ByInput {
		return i.config.found.reportsStatus(r)
	}
	i.health.mu.Lock()
	defer i.health.mu.Unlock()
	return i.config.kind.OwnsStatus || i.health.answersStatus
}
