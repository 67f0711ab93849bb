package composite

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/plan/rollout"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Updated is the condition of a parent with rolling updates.
	Updated = plan.Updated
	// groupLabel and resourceLabel name the parent's resource on its ControllerRevisions.
	groupLabel    = "metacontroller.k8s.io/apiGroup"
	resourceLabel = "metacontroller.k8s.io/resource"
)

// revisions is the resource of ControllerRevisions.
var revisions = object.Resource{
	GVK:    v1alpha1.GroupVersion.WithKind(v1alpha1.ControllerRevisionKind),
	Plural: v1alpha1.ControllerRevisions.Resource, Namespaced: true, HasStatus: true,
}

// rolling has the declarations of a controller about rolling updates.
type rolling struct {
	fields rollout.Fields
	// checks has the kinds with a rolling update method, and no others.
	checks map[schema.GroupVersionKind]rollout.Checks
}

// newRolling reads the declarations. It returns nil if no kind of child has a rolling update
// method.
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
			checks.Conditions = append(checks.Conditions,
				rollout.ConditionCheck{Type: c.Type, Status: c.Status, Reason: c.Reason})
		}
		r.checks[children[i].GVK] = checks
	}
	if len(r.checks) == 0 {
		return nil
	}
	return r
}

// revisions reads the parent's revisions. It also returns the adoptions of orphaned revisions,
// those of an earlier parent that was deleted without them.
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
	r.History, err = rollout.Read(o.Parent, s.rolling.fields, known)
	if err != nil {
		return nil, nil, err
	}
	r.Parents, err = s.parents(o.Parent, r.History)
	return r, adopt, err
}

// revisionLabels returns the labels of new revisions: own, which name the parent's resource, and
// those that the parent's selector matches.
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

// parents returns the parent as it was at each live revision.
func (s *Shape) parents(parent *object.Object, history rollout.History) ([]*object.Object, error) {
	parents := make([]*object.Object, len(history))
	for i, r := range history {
		switch {
		case i == 0:
			parents[i] = parent
		case len(r.Members) > 0:
			var err error
			parents[i], err = s.rolling.fields.Parent(parent, r)
			if err != nil {
				return nil, err
			}
		}
	}
	return parents, nil
}

// roll merges the answers about all live revisions: a child of a rolling kind follows the answer
// about its own revision, and all others follow the latest one.
func (s *Shape) roll(in plan.Input, answers []*hook.Answer, desired *plan.Desired) error {
	o := in.Observed
	older, err := s.older(in, answers)
	if err != nil {
		return err
	}
	w := rollout.World{Paused: o.Finalizing}
	for _, children := range older[1:] {
		w.Previous = append(w.Previous, names(children))
	}
	w.Latest, err = s.latest(in, desired.Children)
	if err != nil {
		return err
	}
	step := o.Revisions.History.Next(w)
	desired.Children = follow(o, desired.Children, older, step)
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

// older returns the children of rolling kinds that each earlier revision desires, by the revision's
// place in the history. The answers are those about the latest revision and about the earlier ones
// that have a parent, in the same order.
func (s *Shape) older(in plan.Input, answers []*hook.Answer) ([]map[rollout.Member]plan.Child, error) {
	revisions := in.Observed.Revisions
	older := make([]map[rollout.Member]plan.Child, len(revisions.History))
	next := 1
	for i := 1; i < len(older); i++ {
		if revisions.Parents[i] == nil {
			continue
		}
		children, err := plan.Children(in, answers[next])
		if err != nil {
			return nil, err
		}
		older[i] = s.members(in.Observed, children)
		next++
	}
	return older, nil
}

// names returns the names of children in a revision.
func names(children map[rollout.Member]plan.Child) map[rollout.Member]bool {
	names := make(map[rollout.Member]bool, len(children))
	for name := range children {
		names[name] = true
	}
	return names
}

// follow returns the children of the latest revision, with those that follow an earlier one
// replaced. It does not change the given list, because package plan compares it with the next one
// by identity.
func follow(
	o *plan.Observed, latest []plan.Child, older []map[rollout.Member]plan.Child, step rollout.Step,
) []plan.Child {
	merged := latest
	for i, c := range latest {
		name := rollout.MemberOf(c.Ref(), o.Scope.ParentNamespace)
		if at := step.At[name]; at > 0 {
			if &merged[0] == &latest[0] {
				merged = slices.Clone(latest)
			}
			merged[i] = older[at][name]
		}
	}
	return merged
}

// members returns the children of rolling kinds by their names in a revision.
func (s *Shape) members(o *plan.Observed, children []plan.Child) map[rollout.Member]plan.Child {
	members := make(map[rollout.Member]plan.Child, len(children))
	for _, c := range children {
		if _, rolls := s.rolling.checks[c.Ref().GVK]; rolls {
			members[rollout.MemberOf(c.Ref(), o.Scope.ParentNamespace)] = c
		}
	}
	return members
}

// latest returns the children of rolling kinds that the latest revision desires, and whether each
// is up to date and ready.
func (s *Shape) latest(in plan.Input, children []plan.Child) ([]rollout.Child, error) {
	o := in.Observed
	var latest []rollout.Child
	for _, c := range children {
		checks, rolls := s.rolling.checks[c.Ref().GVK]
		if !rolls {
			continue
		}
		child := rollout.Child{Member: rollout.MemberOf(c.Ref(), o.Scope.ParentNamespace)}
		var err error
		child.Matches, err = in.Matches(c)
		if err != nil {
			return nil, err
		}
		present := o.Children.Get(c.Ref())
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
