package composite

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/rollout"
	"github.com/hookloop/hookloop/internal/engine/shape"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Updated is the condition that a parent with rolling updates gets.
	Updated = plan.Updated
	// groupLabel and resourceLabel say what a ControllerRevision is a revision of.
	groupLabel    = "metacontroller.k8s.io/apiGroup"
	resourceLabel = "metacontroller.k8s.io/resource"
)

// revisions is the resource of ControllerRevisions.
var revisions = object.Resource{
	GVK:    v1alpha1.GroupVersion.WithKind(v1alpha1.ControllerRevisionKind),
	Plural: v1alpha1.ControllerRevisions.Resource, Namespaced: true, HasStatus: true,
}

// rolling is what a controller declares about rolling updates.
type rolling struct {
	fields rollout.Fields
	// checks are those of the kinds that have a rolling method; others are not in the map.
	checks map[schema.GroupVersionKind]rollout.Checks
}

// newRolling reads the declaration; nil where no kind of child has a rolling method.
func newRolling(spec *v1alpha1.CompositeControllerSpec, children []object.Resource) *rolling {
	r := &rolling{checks: map[schema.GroupVersionKind]rollout.Checks{}}
	if spec.ParentResource.RevisionHistory != nil {
		r.fields = spec.ParentResource.RevisionHistory.FieldPaths
	}
	for i, rule := range spec.ChildResources {
		if rule.UpdateStrategy == nil || !rule.UpdateStrategy.Method.Rolling() {
			continue
		}
		checks := rollout.Checks{Observed: rule.UpdateStrategy.Method == v1alpha1.UpdateRollingInPlace}
		for _, c := range rule.UpdateStrategy.StatusChecks.Conditions {
			checks.Conditions = append(checks.Conditions, rollout.Condition{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
		r.checks[children[i].GVK] = checks
	}
	if len(r.checks) == 0 {
		return nil
	}
	return r
}

// revisions reads the parent's revisions. It also returns the adoptions of orphaned revisions, those
// of an earlier parent that was deleted without them.
func (s *Shape) revisions(
	in shape.Input, o *plan.Observed, claimer *shape.Claimer,
) (*plan.Revisions, []plan.Action, error) {
	own := map[string]string{groupLabel: s.rules.Resource.GVK.Group, resourceLabel: s.rules.Resource.Plural}
	r := &plan.Revisions{Resource: revisions, Namespace: o.Parent.Namespace(), Labels: s.revisionLabels(o, own)}
	if r.Namespace == "" {
		r.Namespace = metav1.NamespaceDefault // Events of cluster-scoped objects are there, too
	}
	ofKind, _ := labels.SelectorFromSet(own).Requirements()
	known, adopt, err := claimer.Revisions(in, revisions, r.Namespace, ofKind)
	if err != nil {
		return nil, nil, err
	}
	if r.History, err = rollout.Read(o.Parent, s.rolling.fields, known); err != nil {
		return nil, nil, err
	}
	r.Parents, err = s.parents(o.Parent, r.History)
	return r, adopt, err
}

// revisionLabels are those of new revisions: what they are a revision of, and what has the parent's
// selector match them.
func (s *Shape) revisionLabels(o *plan.Observed, own map[string]string) map[string]string {
	all := maps.Clone(o.Scope.Labels)
	if all == nil {
		all = map[string]string{}
	}
	if !s.Selectors.Generated() {
		for _, path := range [][]string{{"spec", "template", "metadata", "labels"}, {"spec", "selector", "matchLabels"}} {
			var set map[string]string
			if raw, ok := o.Parent.Field(path...); ok && json.Unmarshal(raw, &set) == nil {
				maps.Copy(all, set)
			}
		}
	}
	maps.Copy(all, own)
	return all
}

// parents are the parent as it was at each live revision.
func (s *Shape) parents(parent *object.Object, history rollout.History) ([]*object.Object, error) {
	parents := make([]*object.Object, len(history))
	for i, r := range history {
		switch {
		case i == 0:
			parents[i] = parent
		case len(r.Members) > 0:
			var err error
			if parents[i], err = s.rolling.fields.Parent(parent, r); err != nil {
				return nil, err
			}
		}
	}
	return parents, nil
}

// roll merges the answers about all live revisions: each child of a rolling kind is desired as the
// answer about its own revision says, all others as the latest does.
func (s *Shape) roll(in plan.Input, answers []*hook.Answer, desired *plan.Desired) error {
	o := in.Observed
	w := rollout.World{Paused: o.Finalizing}
	older := make([]map[rollout.Member]plan.Child, len(o.Revisions.History))
	asked := 1
	for i := 1; i < len(o.Revisions.History); i++ {
		older[i] = map[rollout.Member]plan.Child{}
		if o.Revisions.Parents[i] != nil {
			children, err := plan.Children(in, answers[asked])
			if err != nil {
				return err
			}
			asked++
			older[i] = s.members(o, children)
		}
		wants := make(map[rollout.Member]bool, len(older[i]))
		for m := range older[i] {
			wants[m] = true
		}
		w.Older = append(w.Older, wants)
	}
	var err error
	if w.Latest, err = s.latest(in, desired.Children); err != nil {
		return err
	}
	step := o.Revisions.History.Next(w)
	var merged []plan.Child // the list itself may be the parent's Recall's
	for i, c := range desired.Children {
		m := rollout.MemberOf(c.Ref, o.Scope.ParentNamespace)
		if at := step.At[m]; at > 0 {
			if merged == nil {
				merged = slices.Clone(desired.Children)
			}
			merged[i] = older[at][m]
		}
	}
	if merged != nil {
		desired.Children = merged
	}
	updated := metav1.ConditionFalse
	if step.State == rollout.Done {
		updated = metav1.ConditionTrue
	}
	desired.Conditions = append(desired.Conditions, hook.Condition{
		Type: Updated, Status: updated, Reason: string(step.State), Message: step.Message,
	})
	desired.First, desired.Last, err = o.Revisions.Writes(o.Scope.Owner, step)
	return err
}

// members are the children of rolling kinds by their names in a revision.
func (s *Shape) members(o *plan.Observed, children []plan.Child) map[rollout.Member]plan.Child {
	members := make(map[rollout.Member]plan.Child, len(children))
	for _, c := range children {
		if _, rolls := s.rolling.checks[c.Ref.GVK]; rolls {
			members[rollout.MemberOf(c.Ref, o.Scope.ParentNamespace)] = c
		}
	}
	return members
}

// latest is where the children of rolling kinds stand, seen from the latest revision.
func (s *Shape) latest(in plan.Input, children []plan.Child) ([]rollout.Child, error) {
	o := in.Observed
	var latest []rollout.Child
	for _, c := range children {
		checks, rolls := s.rolling.checks[c.Ref.GVK]
		if !rolls {
			continue
		}
		child := rollout.Child{Member: rollout.MemberOf(c.Ref, o.Scope.ParentNamespace)}
		var err error
		if child.Matches, err = in.Matches(c); err != nil {
			return nil, err
		}
		present := o.Children.Get(c.Ref)
		switch {
		case present == nil:
			child.Lacks = "is not there yet"
		case present.Deleting():
			child.Lacks = "is being deleted"
		case !child.Matches:
			child.Lacks = "is not up to date yet"
		default:
			child.Lacks = checks.Lacks(present)
		}
		latest = append(latest, child)
	}
	return latest, nil
}
