package actor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
)

// finalizeAction is the name of Finalize in metrics, Events and reasons.
const finalizeAction = "Finalize"

// errNothingToWaitFor reports a Finalize that would never be called again.
var errNothingToWaitFor = errors.New("the actor is not done, but has read nothing through its context " +
	"and has named no time (RequeueAfter), so that nothing brings the object back")

// finalize finalizes the object when nothing depends on it. A panic of its own dependencies is
// reported, and does not hold it.
func (r *run[T]) finalize(ctx context.Context) error {
	_, undeclared := r.declared(ctx, r.target)
	if undeclared != nil {
		r.rt.Event(r.target, controller.Warning, reasonPanicked, undeclared.Error())
	}
	waiting, err := r.heldBy(ctx)
	switch {
	case err != nil:
		return r.fail(ctx, finalizeAction, err)
	case len(waiting) > 0:
		return r.holdBack(ctx, waiting)
	}
	done := false
	reads := r.rt.Reads()
	started := r.host.Clock.Now()
	err = r.call(ctx, "finalize", func(c Context[T]) error {
		done, err = r.actor.Finalize(c)
		return err
	})
	if err == nil && !done && r.rt.Reads() == reads && r.requeueAfter == 0 {
		err = errNothingToWaitFor
	}
	r.metrics.actions.ran(r.name, finalizeAction, resultOf(err), r.host.Clock.Since(started))
	switch {
	case err != nil:
		return r.fail(ctx, finalizeAction, err)
	case !done:
		r.pending = true
		message := "Finalize is not done"
		if undeclared != nil {
			message += "; its dependencies are not known: " + undeclared.Error()
		}
		return r.save(ctx, notSynced(reasonFinalizing, message))
	}
	return r.setFinalizer(ctx, plan.RemoveFinalizer)
}

// heldBy returns the names of the objects that depend on the object. The index is a bound
// reference, so their end brings the object back. In a circle of objects that are all being deleted
// none waits for another.
func (r *run[T]) heldBy(ctx context.Context) ([]string, error) {
	var names []string
	for _, d := range r.dependents {
		k := r.kinds[d.of.id]
		if !k.served {
			continue
		}
		found, err := d.find(r.rt, indexValue(r.of.id, r.key))
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			if o.GetUID() == r.observed.UID() {
				continue
			}
			if d.of.id == r.of.id && o.GetDeletionTimestamp() != nil {
				mutual, err := r.dependsOn(ctx, controller.KeyOf(o))
				if err != nil {
					return nil, err
				}
				if mutual {
					continue
				}
			}
			names = append(names, object.KindString(k.gvk)+" "+quoted(controller.KeyOf(o)))
		}
	}
	return names, nil
}

// dependsOn reports whether the object depends on another one of its type, directly or by objects
// that are all being deleted. Beyond maxChain objects that is not known, and false.
func (r *run[T]) dependsOn(ctx context.Context, wanted controller.Key) (bool, error) {
	seen := map[controller.Key]bool{r.key: true}
	for open := []controller.Key{r.key}; len(open) > 0 && len(seen) <= maxChain; open = open[1:] {
		needed, err := r.chain(ctx, r.rt, open[0])
		var panicked *panics.Error
		switch {
		case errors.As(err, &panicked): // reported with its object; it depends on nothing
		case err != nil:
			return false, err
		}
		for _, key := range needed {
			if key == wanted {
				return true, nil
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			o, err := controller.GetFor(r.rt, r.own().gvk, key)
			switch {
			case err != nil && !controller.IsNotFound(err):
				return false, err
			case err == nil && o.GetDeletionTimestamp() != nil:
				open = append(open, key)
			}
		}
	}
	return false, nil
}

// holdBack records the dependents that keep the object.
func (r *run[T]) holdBack(ctx context.Context, names []string) error {
	const most = 5
	more := ""
	if len(names) > most {
		more = fmt.Sprintf(" and %d more", len(names)-most)
		names = names[:most]
	}
	message := "the object is kept until its dependents are gone: " + strings.Join(names, ", ") + more
	r.pending = true
	before := r.observed.ResourceVersion()
	if err := r.save(ctx, notSynced(reasonDependents, message)); err != nil {
		return err
	}
	if r.observed.ResourceVersion() != before { // it is news
		r.rt.Event(r.target, controller.Normal, reasonDependents, message)
	}
	return nil
}
