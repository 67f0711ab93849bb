package actor

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/equality"
)

// ErrDeleted is returned by functions that create objects if the target is being deleted. Return it
// from the action: Finalize follows.
var ErrDeleted = errors.New("the object is being deleted: nothing is created for it")

// Create creates the object and then sets it to the API server's answer.
func Create[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.alive(); err != nil {
		return err
	}
	return ctx.run.write(ctx, verbCreate, o, "requested", ctx.Create)
}

// CreateChild is like [Create], and makes the target the controller of the object, so that it is
// deleted together with the target. If its namespace is empty, it gets the target's. An annotation
// carries the trace context, so that the child's own actor continues the trace.
func CreateChild[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.adopt(o); err != nil {
		return err
	}
	ctx.run.mark(ctx, o, 1)
	return Create(ctx, o)
}

// CreateOrUpdate creates the object or updates the existing one, and then sets it to what the API
// server has. mutate should set the fields that you want in either case. If it changes no field, no
// request is made. The actor must declare the object's type (Owns or DependsOn).
//
// mutate should set single fields of an existing object and not replace the whole spec. Otherwise
// it would remove the API server's defaults, and every call would write.
func CreateOrUpdate[O, T Object](ctx Context[T], o O, mutate func(O) error) error {
	return createOrUpdate(ctx, o, mutate, false)
}

// CreateOrUpdateChild is like [CreateOrUpdate], and makes the target the controller of the object
// as [CreateChild] does. It fails if the existing object has a different controller.
func CreateOrUpdateChild[O, T Object](ctx Context[T], o O, mutate func(O) error) error {
	if o.GetNamespace() == "" {
		o.SetNamespace(ctx.Target.GetNamespace())
	}
	return createOrUpdate(ctx, o, mutate, true)
}

func createOrUpdate[O, T Object](ctx Context[T], o O, mutate func(O) error, child bool) error {
	present, err := controller.Get[O](ctx.Runtime, controller.KeyOf(o))
	switch {
	case controller.IsNotFound(err):
		if err := act.Mutate(o, mutate); err != nil {
			return err
		}
		if child {
			return CreateChild(ctx, o)
		}
		return Create(ctx, o)
	case err != nil:
		return err
	}
	before := present.DeepCopyObject()
	if err := act.Mutate(present, mutate); err != nil {
		return err
	}
	if child {
		if err := ctx.run.adopt(present); err != nil {
			return err
		}
	}
	stripDependencies(present)
	keepTrace(before, present)
	defer func() { reflect.ValueOf(o).Elem().Set(reflect.ValueOf(present).Elem()) }()
	if equality.Semantic.DeepEqual(before, present) {
		return nil
	}
	fields, specChanged := changedFields(before, present)
	if child && specChanged {
		ctx.run.mark(ctx, present, present.GetGeneration()+1)
	}
	return ctx.run.write(ctx, verbUpdate, present, fields, ctx.Update)
}

// Apply sends the fields that the object has by server-side apply, with the actor's name as the
// field manager, and then sets the object to the API server's answer.
func Apply[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.alive(); err != nil {
		return err
	}
	return ctx.run.write(ctx, verbApply, o, "requested", ctx.Apply)
}

// Delete deletes an object that you have read.
func Delete[O, T Object](ctx Context[T], o O) error {
	return ctx.run.write(ctx, verbDelete, o, "requested", ctx.Delete)
}

// Cleanup deletes all objects of the declared types that the target controls. Call it in Finalize,
// and keep the finalizer until it returns true: then they are all gone. When one of them goes, the
// target is reconciled again.
func Cleanup[T Object](ctx Context[T]) (done bool, err error) {
	r := ctx.run
	done = true
	for _, t := range r.types() {
		if !r.kinds[t.id].served {
			continue
		}
		children, err := t.owned(r.rt, r.target)
		if err != nil {
			return false, err
		}
		for _, child := range children {
			done = false
			if child.GetDeletionTimestamp() != nil {
				continue
			}
			if err := r.write(ctx, verbDelete, child, "cleanup", ctx.Delete); err != nil {
				return false, err
			}
		}
	}
	return done, nil
}

// types returns the declared types, each once.
func (r *reconciler[T]) types() []Type {
	var all []Type
	seen := map[string]bool{}
	for _, t := range append(append([]Type{}, r.owns...), r.needs()...) {
		if !seen[t.id] {
			seen[t.id] = true
			all = append(all, t)
		}
	}
	return all
}

// alive returns ErrDeleted if the cache shows that the target is being deleted.
func (r *run[T]) alive() error {
	if r.observed.Deleting() {
		return ErrDeleted
	}
	now, err := controller.GetFor(controller.Untracked(r.rt), r.own().gvk, r.key)
	switch {
	case controller.IsNotFound(err):
		return ErrDeleted
	case err != nil:
		return err
	case now.GetUID() != r.observed.UID() || now.GetDeletionTimestamp() != nil:
		return ErrDeleted
	}
	return nil
}

// adopt makes the target the controller of an object.
func (r *run[T]) adopt(o Object) error {
	if o.GetNamespace() == "" {
		o.SetNamespace(r.key.Namespace)
	}
	return r.rt.Own(r.target, o)
}

// These are the verbs of writes, as spans and Events name them.
const (
	verbCreate = "create"
	verbUpdate = "update"
	verbApply  = "apply"
	verbDelete = "delete"
)

// write sends a write within a span, and remembers it for the action's Event.
func (r *run[T]) write(
	ctx context.Context, verb string, o Object, reason string, f func(context.Context, Object) error,
) (err error) {
	stripDependencies(o)
	name := r.describeObject(o)
	ctx, span := r.host.Tracer.Start(ctx, verb+" "+name, trace.WithAttributes(
		attribute.String("hookloop.write.verb", verb),
		attribute.String("k8s.namespace.name", o.GetNamespace()),
		attribute.String("hookloop.write.name", o.GetName()),
		attribute.String("hookloop.write.why", reason)))
	defer func() { endSpan(span, err) }()
	if err := f(ctx, o); err != nil {
		return err
	}
	r.wrote = append(r.wrote, verb+" "+name+" "+quoted(controller.KeyOf(o)))
	return nil
}

// describeObject returns the kind of an object.
func (r *run[T]) describeObject(o Object) string {
	if kinds, _, err := r.host.Scheme.ObjectKinds(o); err == nil {
		return object.KindString(kinds[0])
	}
	return fmt.Sprintf("%T", o)
}

// stripDependencies removes everything but the name from the objects that o passes to Require.
func stripDependencies(o Object) {
	for _, d := range declaredDependencies(o) {
		if !d.unset {
			d.strip()
		}
	}
}
