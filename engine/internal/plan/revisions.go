package plan

import (
	"maps"

	"github.com/hookloop/hookloop/engine/internal/plan/rollout"
	"github.com/hookloop/hookloop/engine/object"
)

// Revisions are the revisions of a parent in one sync, and the metadata of new ones.
type Revisions struct {
	// Resource is the resource of ControllerRevisions; Namespace and Labels are those of new ones.
	Resource  object.Resource
	Namespace string
	Labels    map[string]string
	History   rollout.History
	// Parents are the parent as it was at each revision, in the history's order. It is nil for a
	// revision without children, about which the hook is not asked.
	Parents []*object.Object
}

// Writes returns the writes that record a step: first, before a child changes, new and updated
// revisions; last, the removal of revisions without children. The latest revision stays whatever
// its children.
func (r *Revisions) Writes(owner Owner, step rollout.Step) (first, last []Action, err error) {
	for i, revision := range r.History {
		members := step.Members[i]
		switch {
		case revision.Object == nil:
			first = append(first, r.create(owner, revision, members))
		case i > 0 && len(members) == 0:
			last = append(last, r.action(Delete, revision.Object, "no child is at this revision"))
		case !maps.Equal(members, revision.Members):
			a := r.action(Update, revision.Object, step.Message)
			a.Body, err = revision.Object.Map()
			if err != nil {
				return nil, nil, err
			}
			a.ResourceVersion, a.Body["children"] = revision.Object.ResourceVersion(), rollout.Children(members)
			first = append(first, a)
		}
	}
	return first, last, nil
}

func (r *Revisions) action(verb Verb, o *object.Object, why string) Action {
	return Action{Verb: verb, Resource: r.Resource, Ref: o.Ref(), UID: o.UID(), Why: why}
}

func (r *Revisions) create(owner Owner, revision *rollout.Revision, members map[rollout.Member]bool) Action {
	name := revision.Name(owner.Resource, owner.UID)
	labels := make(map[string]any, len(r.Labels))
	for key, value := range r.Labels {
		labels[key] = value
	}
	body := map[string]any{
		"apiVersion": r.Resource.GVK.GroupVersion().String(), "kind": r.Resource.GVK.Kind,
		"metadata":    map[string]any{"namespace": r.Namespace, "name": name, "labels": labels},
		"parentPatch": revision.Patch, "children": rollout.Children(members),
	}
	setOwner(body, owner)
	return Action{
		Verb: Create, Resource: r.Resource, Ref: object.Ref{GVK: r.Resource.GVK, Namespace: r.Namespace, Name: name},
		Body: body, Owner: owner, Why: "a new revision of the parent",
	}
}

// Matches reports whether a desired child exists and is as desired: a plan would not write it.
func (in Input) Matches(c Child) (bool, error) {
	p := planner{in: in}
	p.result.Converged = NewConverged(0)
	err := p.child(c)
	return p.result.Unchanged == 1, err
}
