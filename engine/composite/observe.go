package composite

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/claim"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/pipeline"
	"github.com/hookloop/hookloop/engine/plan"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Observe reads a parent and what belongs to it. It returns nil for a parent that is gone, or that leaves (is being deleted or no
// longer selected) without our finalizer.
func (s *Shape) Observe(reader cache.Reader, key object.Key) (*plan.Observed, error) {
	parent := reader.Get(s.parent, key.Parent.Namespace, key.Parent.Name)
	if parent == nil {
		return nil, nil
	}
	held := parent.HasFinalizer(s.finalizer)
	leaving := parent.Deleting() || !s.selected.Matches(labels.Set(parent.Labels()))
	if leaving && !held {
		return nil, nil
	}
	selector, err := claim.Selector(parent, s.generate)
	if err != nil {
		return nil, &pipeline.ParentError{Field: "spec.selector", Problem: err.Error()}
	}
	claims := claim.Classify(claim.Params{Parent: parent, Selector: selector, Candidates: s.candidates(reader, parent, leaving)})
	observed := &plan.Observed{
		Key: key, Parent: parent,
		Children:   object.NewSet(slices.Concat(claims.Owned, claims.Adopt)...),
		Finalizing: leaving,
		Settled:    leaving && (!s.finalizes || collected(parent)),
		Scope:      s.scope(parent, selector),
	}
	observed.Prepare = s.prepare(observed, claims, held)
	return observed, nil
}

// candidates are the objects that are the parent's, and the orphans that could become it.
func (s *Shape) candidates(reader cache.Reader, parent *object.Object, leaving bool) []*object.Object {
	var all []*object.Object
	for _, d := range s.declared {
		all = append(all, reader.OwnedBy(d.Resource, parent.UID())...)
		if leaving {
			continue
		}
		all = append(all, reader.Orphans(d.Resource, parent.Namespace())...)
	}
	return all
}

// collected says that the garbage collector is at work on the parent's children, or was told to leave them.
func collected(parent *object.Object) bool {
	return parent.Deleting() &&
		(parent.HasFinalizer(metav1.FinalizerDeleteDependents) || parent.HasFinalizer(metav1.FinalizerOrphanDependents))
}

func (s *Shape) scope(parent *object.Object, selector labels.Selector) plan.Scope {
	scope := plan.Scope{
		Declared:        s.declared,
		Owner:           plan.Owner{GVK: parent.GVK(), Name: parent.Name(), UID: parent.UID(), Resource: s.parent},
		ParentNamespace: parent.Namespace(),
		Selector:        selector,
	}
	if s.generate {
		scope.Labels = map[string]string{claim.UIDLabel: string(parent.UID())}
	}
	return scope
}

// prepare lists the writes that come before the hook is asked: the finalizer first, then the claims.
func (s *Shape) prepare(o *plan.Observed, claims claim.Claims, held bool) []plan.Action {
	var actions []plan.Action
	if held != s.finalizes {
		verb, why := plan.AddFinalizer, "a finalize hook is declared"
		if held {
			verb, why = plan.RemoveFinalizer, "no finalize hook is declared"
		}
		actions = append(actions, plan.Action{
			Verb: verb, Resource: s.parent, Ref: o.Parent.Ref(), UID: o.Parent.UID(), Finalizer: s.finalizer, Why: why,
		})
	}
	for _, child := range claims.Adopt {
		actions = append(actions, s.claim(plan.Adopt, child, o.Scope.Owner, "the parent's selector matches an orphan"))
	}
	for _, child := range claims.Release {
		actions = append(actions, s.claim(plan.Release, child, o.Scope.Owner, "the parent's selector no longer matches"))
	}
	return actions
}

func (s *Shape) claim(verb plan.Verb, child *object.Object, owner plan.Owner, why string) plan.Action {
	i := slices.IndexFunc(s.declared, func(d plan.Declared) bool { return d.Resource.GVK == child.GVK() })
	return plan.Action{
		Verb: verb, Resource: s.declared[i].Resource, Ref: child.Ref(), UID: child.UID(),
		ResourceVersion: child.ResourceVersion(), Owner: owner, Why: why,
	}
}

// sameButStatus says that an update changed none of generation, labels, annotations, finalizers and owners.
func sameButStatus(old, current *object.Object) bool {
	return old.Generation() == current.Generation() && old.Deleting() == current.Deleting() &&
		maps.Equal(old.Labels(), current.Labels()) && maps.Equal(old.Annotations(), current.Annotations()) &&
		slices.Equal(old.Finalizers(), current.Finalizers()) &&
		slices.EqualFunc(old.OwnerReferences(), current.OwnerReferences(), func(a, b metav1.OwnerReference) bool { return a.UID == b.UID })
}
