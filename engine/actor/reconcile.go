package actor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is a type in a running process.
type kind struct {
	gvk      schema.GroupVersionKind
	resource object.Resource
	served   bool
}

// reconciler runs the actor of one declaration. It is safe for concurrent use.
type reconciler[T Object] struct {
	*Declaration[T]
	host      *host.Host
	status    *report.Status
	metrics   metrics
	finalizer string
	// limit is the largest number of actions in one reconcile.
	limit int
	// kinds are the declared types by their id.
	kinds map[string]kind
}

// newReconciler returns the reconciler of a declaration in a process that serves resources.
func newReconciler[T Object](d *Declaration[T], h *host.Host, served host.Served) (*reconciler[T], error) {
	r := &reconciler[T]{
		Declaration: d, host: h, status: report.NewStatus(h.Writer), metrics: metricsIn(h.Registry),
		finalizer: FinalizerPrefix + d.name, limit: d.actions, kinds: map[string]kind{},
	}
	types := append([]Type{d.of}, d.owns...)
	types = append(types, d.needs()...)
	for _, dependent := range d.dependents {
		types = append(types, dependent.of)
	}
	for _, t := range types {
		gvk, err := kindOf(h.Scheme, t)
		if err != nil {
			return nil, err
		}
		resource, found := served[gvk]
		r.kinds[t.id] = kind{gvk: gvk, resource: resource, served: found}
	}
	return r, nil
}

// running is a running actor.
type running[T Object] struct {
	host.Runner
	reconciler *reconciler[T]
}

// Run implements host.Runner. The series of the objects' conditions end with it.
func (r *running[T]) Run(ctx context.Context) error {
	defer r.reconciler.metrics.conditions.forgetKind(r.reconciler.kindText())
	return r.Runner.Run(ctx)
}

// Problems implements host.Troubled.
func (r *running[T]) Problems() []string {
	if t, ok := r.Runner.(host.Troubled); ok {
		return t.Problems()
	}
	return nil
}

// own is the kind of the actor's objects.
func (r *reconciler[T]) own() kind { return r.kinds[r.of.id] }

func (r *reconciler[T]) kindText() string { return object.KindString(r.own().gvk) }

// Reconcile implements controller.Reconciler.
func (r *reconciler[T]) Reconcile(ctx context.Context, req *controller.Request[T]) (controller.Result, error) {
	one := &run[T]{reconciler: r, rt: req.Runtime, key: req.Key}
	err := one.reconcile(ctx)
	if err != nil {
		return controller.Result{}, err
	}
	return controller.Result{RequeueAfter: one.requeueAfter, Pending: one.pending}, nil
}

// run is one reconcile of one object.
type run[T Object] struct {
	*reconciler[T]
	rt  *controller.Runtime
	key controller.Key

	// observed is the object in the API server's last version, and target the same as a Go value. The
	// actor may change the status of target; before is that status before such changes.
	observed *object.Object
	target   T
	before   map[string]any

	// requeueAfter is the time after which the actor wants to be asked again; 0 for none.
	requeueAfter time.Duration
	// pending reports that the object waits for another one, so that its change is not complete.
	pending bool
	actions int
	// last is the name of the last action, and effective reports whether it wrote anything.
	last      string
	effective bool
	// wrote are the writes of the current action through this package, such as
	// `create ConfigMap "shop/a"`.
	wrote []string
}

// next is what a reconcile does after a step.
type next int

const (
	// finished ends the reconcile.
	finished next = iota
	// reload reads the object again, and continues.
	reload
)

// reconcile takes steps until the object has reached its desired state, waits, or fails.
func (r *run[T]) reconcile(ctx context.Context) error {
	for {
		exists, err := r.load()
		if err != nil {
			return err
		}
		if !exists {
			r.forget()
			return nil
		}
		then, err := r.stage(ctx)
		r.export()
		if err != nil || then == finished {
			return err
		}
	}
}

// stage is one step of a reconcile.
func (r *run[T]) stage(ctx context.Context) (next, error) {
	switch {
	case r.observed.Deleting() && !r.observed.HasFinalizer(r.finalizer):
		return finished, nil
	case r.observed.Deleting():
		return finished, r.finalize(ctx)
	case !r.observed.HasFinalizer(r.finalizer):
		return reload, r.setFinalizer(ctx, plan.AddFinalizer)
	}
	if r.actions == 0 {
		met, err := r.awaitDependencies(ctx)
		if err != nil || !met {
			return finished, err
		}
	}
	return r.step(ctx)
}

// load reads the object. It reports whether it exists.
func (r *run[T]) load() (bool, error) {
	observed, err := controller.GetObject(controller.Untracked(r.rt), r.own().gvk, r.key)
	switch {
	case controller.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, r.take(observed)
}

// setFinalizer adds or removes the finalizer.
func (r *run[T]) setFinalizer(ctx context.Context, verb plan.Verb) error {
	_, err := r.host.Writer.Do(ctx, plan.Action{
		Verb: verb, Resource: r.own().resource, Ref: r.observed.Ref(), UID: r.observed.UID(),
		ResourceVersion: r.observed.ResourceVersion(), Finalizer: r.finalizer, Why: "actor " + r.name,
	})
	return err
}

// step asks the actor for the next action and carries it out.
func (r *run[T]) step(ctx context.Context) (next, error) {
	action, err := r.observe(ctx)
	switch {
	case err != nil:
		return finished, r.fail(ctx, "Observe", err)
	case action == nil:
		return finished, r.reached(ctx)
	case action.Name == "" || action.Run == nil:
		return finished, r.fail(ctx, "Observe", errors.New("the action is incomplete: expected a name and a function"))
	case !actionName.MatchString(action.Name):
		return finished, r.fail(ctx, "Observe", errActionName(action.Name))
	case action.Name == r.last && !r.effective:
		// The action has written nothing and would run again on the same state.
		return finished, r.reached(ctx)
	}
	if err := r.save(ctx); err != nil {
		return finished, err
	}
	if r.actions == r.limit {
		r.requeueAfter = time.Millisecond
		return finished, r.save(ctx, notSynced(reasonActions, fmt.Sprintf(
			"%d actions in one reconcile have not reached the desired state; the next one is %s", r.limit, action.Name)))
	}
	return r.act(ctx, action)
}

// actionName is the form of names of actions. They begin the reasons of conditions and Events: the
// API server limits the length of those.
var actionName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,99}$`)

// errActionName reports an action with a name that is no reason.
func errActionName(name string) error {
	return fmt.Errorf("the name of the action %s is invalid, expected a letter and up to 99 letters, digits and _",
		strconv.Quote(report.Shorten(name, 100)))
}

// observe calls the actor's Observe.
func (r *run[T]) observe(ctx context.Context) (action *Action[T], err error) {
	err = r.call(ctx, "observe", func(c Context[T]) error {
		action, err = r.actor.Observe(c)
		return err
	})
	return action, err
}

// act carries out an action.
func (r *run[T]) act(ctx context.Context, action *Action[T]) (next, error) {
	r.actions++
	r.last = action.Name
	r.wrote = nil
	before := expectations.Total(ctx)
	started := r.host.Clock.Now()
	err := r.call(ctx, "action "+action.Name, action.Run)
	r.metrics.actions.ran(r.name, action.Name, resultOf(err), r.host.Clock.Since(started))
	if errors.Is(err, ErrDeleted) {
		return reload, nil
	}
	r.effective = expectations.Total(ctx) > before
	if err == nil && r.effective {
		r.rt.Event(r.target, controller.Normal, action.Name, describe(r.wrote))
	}
	if err != nil {
		return finished, r.fail(ctx, action.Name, err)
	}
	if err := r.save(ctx); err != nil {
		return finished, err
	}
	r.effective = expectations.Total(ctx) > before
	return reload, nil
}

// resultOf returns the label of an action's result.
func resultOf(err error) string {
	switch {
	case err == nil:
		return "success"
	case errors.Is(err, ErrDeleted):
		return "deleted"
	case isQuiet(err):
		return "conflict"
	}
	return "error"
}

// reached records that the object has reached its desired state, unless the actor waits for a time.
func (r *run[T]) reached(ctx context.Context) error {
	if r.requeueAfter > 0 && r.last != "" {
		return r.save(ctx)
	}
	return r.save(ctx, synced())
}

// forget removes what the process knows of an object that is gone.
func (r *run[T]) forget() { r.metrics.conditions.forget(r.id()) }

func (r *run[T]) id() objectID { return objectID{kind: r.kindText(), NamespacedName: r.key} }

// export updates the metric of conditions, for types that opt in.
func (r *run[T]) export() {
	if c, ok := any(r.target).(Conditional); ok {
		r.metrics.conditions.set(r.id(), c.GetConditions())
	}
}

// describe returns the text of an Event about writes.
func describe(writes []string) string {
	const most = 5
	if len(writes) == 0 {
		return "the action has written objects"
	}
	text := ""
	for i, w := range writes {
		if i == most {
			return fmt.Sprintf("%s and %d more", text, len(writes)-most)
		}
		if i > 0 {
			text += ", "
		}
		text += w
	}
	return text
}
