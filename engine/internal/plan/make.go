package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// Make decides the writes of one sync: deletes first, then creates and updates in the hook's order.
// It leaves alone children that are being deleted and, for now, children with unmet dependencies.
// The error is an *AnswerError about a desired child that cannot be written, or an *UnknownError if
// the observed children may lack objects.
func Make(in Input, desired *Desired) (Result, error) {
	p := planner{in: in}
	err := in.Observed.Check()
	if err != nil {
		return Result{}, err
	}
	p.waves, err = newWaves(in.Observed.Scope.Field, desired.Children)
	if err != nil {
		return Result{}, err
	}
	if err := p.children(desired.Children, desired.Keep); err != nil {
		return Result{}, err
	}
	p.result.First, p.result.Actions, p.result.Last = desired.First, slices.Concat(p.deletes, p.writes), desired.Last
	p.result.Waiting, p.result.Conditions = len(p.waves.waits), append(p.waves.conditions(), p.heldConditions()...)
	if !p.waves.deletesWait {
		p.result.RemoveFinalizer = desired.RemoveFinalizer
	}
	return p.result, nil
}

// children decides about all children or, if it can continue from the previous plan, about those
// that have changed.
func (p *planner) children(desired []Child, keep []object.Ref) error {
	previous := p.in.Previous
	places, ok := previous.changed(p.in, desired)
	if ok {
		p.result.Converged = p.in.Converged
		p.result.Unchanged = len(desired) - len(places)
	} else {
		previous.forgetPlan()
		p.result.Converged = NewConverged(len(desired))
		if p.undesired(desired, keep) || p.waves.hasDependencies {
			previous = nil // the next plan has more to look at than the children that are desired
		}
		places = make([]int, len(desired))
		for i := range places {
			places[i] = i
		}
	}
	var open []int
	for _, i := range places {
		before := p.result.Unchanged
		if err := p.child(desired[i]); err != nil {
			field := p.in.Observed.Scope.Field
			item := desired[i].Ref().String()
			return &AnswerError{Field: field, Index: i, Item: item, Problem: err.Error()}
		}
		if p.result.Unchanged == before {
			open = append(open, i)
		}
	}
	previous.keepPlan(p.in.Observed.Children, desired, open)
	return nil
}

// planner makes one plan.
type planner struct {
	in      Input
	waves   waves
	deletes []Action
	writes  []Action
	result  Result
	// heldBack names the first children with changes that are held back, each with its fields.
	heldBack []string
	// text is used again for the desired state of each child.
	text []byte
}

// undesired deletes observed children that are neither desired nor to keep, each after those that
// depend on it. It reports whether there are children that are not desired.
func (p *planner) undesired(desired []Child, keep []object.Ref) bool {
	wanted := make(map[object.Ref]bool, len(desired)+len(keep))
	for _, c := range desired {
		wanted[c.Ref()] = true
	}
	for _, ref := range keep {
		wanted[ref] = true
	}
	var going []*object.Object
	for _, d := range p.in.Observed.Scope.ChildKinds {
		for _, o := range p.in.Observed.Children.Of(d.Resource.GVK) {
			if !wanted[o.Ref()] {
				going = append(going, o)
			}
		}
	}
	order := newTeardown(going)
	for _, o := range going {
		before, waits := order.blocker(o.Ref())
		if !o.Deleting() {
			p.result.Undesired++
		}
		switch {
		case o.Deleting():
			p.result.Pending++
		case waits:
			p.waves.waits = append(p.waves.waits, fmt.Sprintf("%s goes after %s", o.Ref(), before))
			p.waves.deletesWait = true
		default:
			d, _ := p.in.Observed.Scope.childKind(o.GVK()) // found above by its declaration
			p.remove(d, o, "no longer desired")
		}
	}
	return len(going)+len(keep) > 0
}

func (p *planner) remove(d *ChildKind, o *object.Object, why string) {
	p.deletes = append(p.deletes, Action{Verb: Delete, Resource: d.Resource, Ref: o.Ref(), UID: o.UID(), Why: why})
}

// child decides about one desired child. A child that was found converged costs two comparisons.
func (p *planner) child(c Child) error {
	ref := c.Ref()
	o := p.in.Observed.Children.Get(ref)
	known := p.in.Converged.At(ref)
	p.result.Converged.Delete(ref)
	switch {
	case o == nil && p.waves.postpone(p.in.Observed, c):
		return nil
	case o == nil:
		return p.create(c)
	case o.Deleting():
		p.result.Pending++
		return nil
	case known.Desired == c.Hash && known.Version == VersionOf(o.ResourceVersion()) && known.HeldBack == "":
		p.converged(c, known)
		return nil
	case c.Kind.Method == OnDelete || c.Kind.Method == "":
		return p.holdBack(c, o, known)
	}
	return p.compare(c, o, known)
}

func (p *planner) converged(c Child, s ConvergedAt) {
	p.result.Unchanged++
	p.result.Converged.Set(c.Ref(), s)
}

// create posts the desired state without the fields that only the server sets. It passes a status
// on: kinds without a status subresource store it, all others ignore it.
func (p *planner) create(c Child) error {
	desired, err := c.whole()
	if err != nil {
		return err
	}
	status, carries := desired["status"]
	merge.Strip(desired)
	a := Action{
		Verb: Create, Resource: c.Kind.Resource, Ref: c.Ref(),
		Owner: p.in.Observed.Scope.Owner, Marks: p.in.Observed.Scope.Marks, Desired: c.Hash, Why: "desired, not there",
	}
	a.Body = merge.Apply(nil, nil, desired)
	setOwner(a.Body, a.Owner)
	if p.in.Apply.ServerSide {
		a.Body = asStored(c.Kind.Resource.GVK, a.Body)
		a.Manager, a.Applied = p.in.Apply.Manager, maps.Clone(a.Body)
	} else if err := annotate(a.Body, desired); err != nil {
		return err
	}
	if carries {
		a.Body["status"] = status
	}
	p.writes = append(p.writes, a)
	return nil
}
