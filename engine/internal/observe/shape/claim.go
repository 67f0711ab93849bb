package shape

import (
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Claimer finds the objects that belong to one parent: those that it owns by controller reference,
// and orphans that its selector matches, which it adopts (the rules of Kubernetes' controller
// references; compatibility: ownership of composite controllers). It only decides. The adoptions
// and releases are returned as actions, each bound to the observed version of its object.
type Claimer struct {
	Parent   *object.Object
	Owner    plan.Owner
	Selector labels.Selector
	// Departing reports whether the parent is being deleted or no longer selected. A departing
	// parent adopts nothing.
	Departing bool
}

// Claims are the result of Claimer.Children.
type Claims struct {
	// Children are the parent's objects: adopted ones included, released ones left out. The set is
	// complete for all kinds that were read.
	Children view.Set
	// Actions are the adoptions, then the releases.
	Actions []plan.Action
}

// relation is the relation between an object and a parent.
type relation int

const (
	// unrelated objects have another owner, are attachments of a decorator or outputs of a map
	// controller, or are orphans that the parent does not adopt.
	unrelated relation = iota
	// owned objects are the parent's and stay so.
	owned
	// adoptable objects are orphans that the parent adopts.
	adoptable
	// released objects are owned by the parent, and its selector no longer matches them.
	released
)

// classify is the rule of adoption. An object with the marks of another kind of controller is
// unrelated, because it may have the same parent as its owner. An owned object stays with its
// parent while one of them is being deleted.
func (c *Claimer) classify(o *object.Object, selector labels.Selector) relation {
	owner := o.ControllerRef()
	deleting := o.Deleting() || c.Parent.Deleting()
	if Marked(o) {
		return unrelated
	}
	if owner != nil && owner.UID != c.Parent.UID() {
		return unrelated
	}
	selected := selector.Matches(labels.Set(o.Labels()))
	switch {
	case owner != nil && (selected || deleting):
		return owned
	case owner != nil:
		return released
	case selected && !deleting && !c.Departing:
		return adoptable
	}
	return unrelated
}

// Children reads the objects of the declared kinds that belong to the parent. It classifies only
// the owned objects that the snapshot does not have, and updates the snapshot. The error is a
// *view.Error if the objects of a kind are not known.
func (c *Claimer) Children(in Input, kinds []plan.ChildKind) (Claims, error) {
	lists := make([]view.List, len(kinds))
	var adopted []*object.Object
	var actions []plan.Action
	for i, kind := range kinds {
		v, err := in.Reader.View(kind.Resource)
		if err != nil {
			return Claims{}, err
		}
		lists[i] = v.OwnedBy(view.OwnerOf(c.Parent))
		for _, o := range c.adoptable(v, c.Parent.Namespace(), c.Selector) {
			adopted = append(adopted, o)
			actions = append(actions, c.action(plan.Adopt, kind.Resource, o, "the parent's selector matches an orphan"))
		}
	}
	isOwned := func(o *object.Object) bool { return c.classify(o, c.Selector) == owned }
	now := OwnedSnapshot{parent: c.Parent.UID(), selector: c.Selector.String(), owned: lists}
	if !slices.ContainsFunc(in.Owned.added(now), func(o *object.Object) bool { return !isOwned(o) }) {
		in.Owned.replace(now)
		return Claims{Children: view.SetOf(lists...).With(adopted...), Actions: actions}, nil
	}
	in.Owned.replace(OwnedSnapshot{})
	kept := make([]view.List, len(lists))
	for i, l := range lists {
		kept[i] = l.Where(isOwned)
	}
	return Claims{Children: view.SetOf(kept...).With(adopted...), Actions: c.release(lists, actions)}, nil
}

// Revisions reads the parent's ControllerRevisions (resource r) in a namespace. The parent keeps
// those that it owns, whatever its selector, and adopts orphans that match its selector and the
// requirements of kind: revisions of a parent that was deleted without them. Revisions that are
// being deleted are left out.
func (c *Claimer) Revisions(
	in Input, r object.Resource, namespace string, kind labels.Requirements,
) (view.List, []plan.Action, error) {
	v, err := in.Reader.View(r)
	if err != nil {
		return view.List{}, nil, err
	}
	// A revision is always in this namespace, also that of a cluster-scoped parent.
	owner := view.Owner{UID: c.Parent.UID(), Namespace: namespace}
	revisions := v.OwnedBy(owner).Where(func(o *object.Object) bool {
		return !o.Deleting() && c.classify(o, labels.Everything()) == owned
	})
	orphans := c.adoptable(v, namespace, c.Selector.Add(kind...))
	var actions []plan.Action
	for _, o := range orphans {
		actions = append(actions, c.action(plan.Adopt, r, o, "the parent's selector matches an orphaned revision"))
	}
	return revisions.With(orphans...), actions, nil
}

// adoptable returns the orphans of a namespace that the parent adopts.
func (c *Claimer) adoptable(v view.View, namespace string, selector labels.Selector) []*object.Object {
	if c.Departing {
		return nil
	}
	isAdoptable := func(o *object.Object) bool { return c.classify(o, selector) == adoptable }
	return slices.Collect(v.Orphans(namespace, selector).Where(isAdoptable).All())
}

// release appends the releases of objects of the lists to actions.
func (c *Claimer) release(lists []view.List, actions []plan.Action) []plan.Action {
	for _, l := range lists {
		for o := range l.All() {
			if c.classify(o, c.Selector) == released {
				a := c.action(plan.Release, l.Resource(), o, "the parent's selector no longer matches")
				actions = append(actions, a)
			}
		}
	}
	return actions
}

func (c *Claimer) action(verb plan.Verb, r object.Resource, o *object.Object, why string) plan.Action {
	return plan.Action{
		Verb:            verb,
		Resource:        r,
		Ref:             o.Ref(),
		UID:             o.UID(),
		ResourceVersion: o.ResourceVersion(),
		Owner:           c.Owner,
		Why:             why,
	}
}
