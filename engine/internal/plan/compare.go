package plan

import (
	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// comparison is an observed child beside its desired state.
type comparison struct {
	// desired is the hook's, applied is desired with the owner reference, before is the observed
	// object, and merged is the result of an apply to it. applied is nil if nothing needs it: with
	// dynamic apply, to an object that server-side apply has not applied.
	desired, applied, before, merged map[string]any
	// why names the first differences between before and merged, fields the paths in it. Both are
	// empty if there is none.
	why    string
	fields []string
	// recorded reports whether the object carries the strategy's own record of this apply, same
	// whether the recorded apply had the present desired state, and unknown whether there is no
	// record of any apply.
	recorded, same, unknown bool
}

// comparison compares an observed child with its desired state.
func (p *planner) comparison(c Child, o *object.Object) (v comparison, err error) {
	v.desired, err = c.Map()
	if err != nil {
		return v, err
	}
	v.before, err = o.Map()
	if err != nil {
		return v, err
	}
	if p.in.Apply.ServerSide || o.Applied(p.in.Apply.Manager) != nil {
		v.applied = merge.Apply(nil, nil, asStored(c.Kind.Resource.GVK, v.desired))
		setOwner(v.applied, p.in.Observed.Scope.Owner)
	}
	last := lastApplied(o)
	dropped := dropped(o, p.in.Apply.Manager, v.applied)
	v.merged = merge.Apply(v.before, asStored(c.Kind.Resource.GVK, last), asStored(c.Kind.Resource.GVK, v.desired))
	v.unknown = last == nil && dropped == nil
	if p.in.Apply.ServerSide {
		v.recorded = dropped != nil && !o.HasLastApplied()
		v.same = v.recorded && dropped.Empty()
	} else {
		v.recorded = merge.Equal(last, v.desired)
		v.same = v.recorded
	}
	if dropped != nil && (p.in.Apply.ServerSide || last == nil) {
		dropped.Remove(v.merged)
	}
	keepOwner(v.merged, v.before, p.in.Observed.Scope.Owner.UID)
	v.why, v.fields = merge.DiffPaths(v.before, v.merged)
	return v, nil
}

// isApplied reports whether dynamic apply has nothing to do: the object's annotation has the
// present desired state, and the object includes that. It compares texts, so that a start does not
// decode and merge all children; false means that it is unknown.
func (p *planner) isApplied(c Child, o *object.Object) (bool, error) {
	if p.in.Apply.ServerSide || !o.HasLastApplied() || o.Applied(p.in.Apply.Manager) != nil {
		return false, nil
	}
	desired, err := c.Map()
	if err != nil {
		return false, err
	}
	p.text, err = jsonmap.Append(p.text[:0], desired)
	if err != nil {
		return false, err
	}
	return o.LastAppliedIs(p.text) && merge.Includes(o.Raw(), p.text), nil
}

// dropped returns the fields that a manager has applied by server-side apply and that are no longer
// desired; nil if it has applied none. A record that cannot be read counts as none: the next apply
// replaces it.
func dropped(o *object.Object, manager string, applied map[string]any) *merge.Owned {
	record := o.Applied(manager)
	if record == nil {
		return nil
	}
	owned, err := merge.ParseOwned(record)
	if err != nil {
		return nil
	}
	return owned.Dropped(applied)
}

// compare looks for a difference, and updates or recreates the child by its method if there is one.
// It also writes a missing or different record of the apply, so that later removals work, but
// recreates nothing for that: a new child gets its annotation with its creation, and is applied in
// place to record it in managedFields.
func (p *planner) compare(c Child, o *object.Object, known ConvergedAt) error {
	if known == (ConvergedAt{}) || known.Desired == c.Hash { // else the object has another record
		same, err := p.isApplied(c, o)
		if err != nil {
			return err
		}
		if same {
			p.converged(c, ConvergedAt{Desired: c.Hash, Version: VersionOf(o.ResourceVersion())})
			return nil
		}
	}
	v, err := p.comparison(c, o)
	if err != nil {
		return err
	}
	if known.Desired != c.Hash {
		known = ConvergedAt{}
	}
	recreate := c.Kind.Method == Recreate || c.Kind.Method == RollingRecreate
	same := len(v.fields) == 0
	if same {
		known.IgnoredDiff = 0
	} else if known.IgnoredDiff != 0 {
		same = known.IgnoredDiff == ignoredDiff(v.before, v.merged)
	}
	recorded := v.recorded || known.Unrecorded || recreate && !p.in.Apply.ServerSide
	switch {
	case same && recorded:
		p.converged(c, ConvergedAt{
			Desired: c.Hash, Version: VersionOf(o.ResourceVersion()), IgnoredDiff: known.IgnoredDiff, Unrecorded: !v.recorded,
		})
		return nil
	case recreate && !same:
		p.remove(c.Kind, o, "recreate: "+v.why)
		p.deletes[len(p.deletes)-1].Fields = v.fields
		if known.Desired == 0 && (v.same || v.unknown) {
			return p.requireDryRun(c, v)
		}
		return nil
	}
	return p.update(c, o, v)
}

// requireDryRun makes the last delete depend on a dry run. It is for a child with a recorded apply
// that had the same desired state, or none, and of which no ignored difference is known, as after a
// restart. Its difference may be the server's notation of a value (1000m is 1), for which nothing
// must be recreated.
func (p *planner) requireDryRun(c Child, v comparison) error {
	a := &p.deletes[len(p.deletes)-1]
	a.Owner = p.in.Observed.Scope.Owner
	if p.in.Apply.ServerSide {
		a.Manager = p.in.Apply.Manager
		a.Applied = v.applied
	} else if err := annotate(v.merged, v.desired); err != nil {
		return err
	}
	a.Body, a.Stable, a.Desired = v.merged, StableHash(v.before), c.Hash
	return nil
}

// update writes the child in place.
func (p *planner) update(c Child, o *object.Object, v comparison) error {
	a := Action{
		Verb: Update, Resource: c.Kind.Resource, Ref: c.Ref(), UID: o.UID(), ResourceVersion: o.ResourceVersion(),
		Body: v.merged, Owner: p.in.Observed.Scope.Owner, Desired: c.Hash, Why: v.why, Fields: v.fields,
	}
	if p.in.Apply.ServerSide {
		a.Verb = ServerSideApply
		a.Manager = p.in.Apply.Manager
		a.Body = v.applied
		a.Applied = v.applied
		a.Takeover = !v.recorded
		if a.Why == "" {
			a.Why = "metadata.managedFields: not applied by " + a.Manager + " yet"
			a.Fields = []string{"metadata.managedFields"}
		}
	} else {
		if a.Why == "" {
			a.Why = "metadata.annotations." + object.LastAppliedAnnotation
			a.Fields = []string{a.Why}
		}
		if err := annotate(v.merged, v.desired); err != nil {
			return err
		}
	}
	p.writes = append(p.writes, a)
	return nil
}
