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

// ErrDeleted reports that nothing is created for an object that is being deleted. The action ends,
// and Finalize follows.
var ErrDeleted = errors.New("the object is being deleted: nothing is created for it")

// Create creates an object. The object becomes the API server's answer.
func Create[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.alive(); err != nil {
		return err
	}
	return ctx.run.write(ctx, verbCreate, o, "requested", ctx.Create)
}

// CreateChild is Create with the target as the object's controller, so that it is deleted with the
// target. An empty namespace becomes the target's. The child carries the trace context in an
// annotation, so that the work of its own actor belongs to the same trace.
func CreateChild[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.adopt(o); err != nil {
		return err
	}
	ctx.run.mark(ctx, o, 1)
	return Create(ctx, o)
}

// CreateOrUpdate creates an object, or updates the present one: mutate sets the desired fields of
// either. It writes nothing if mutate changes nothing. The object becomes the present one. The
// actor must declare its type (Owns, DependsOn).
//
// For a present object, mutate should set single fields rather than replace the whole spec:
// defaults that the API server has set would be removed, and each call would write.
func CreateOrUpdate[O, T Object](ctx Context[T], o O, mutate func(O) error) error {
	return createOrUpdate(ctx, o, mutate, false)
}

// CreateOrUpdateChild is CreateOrUpdate with the target as the object's controller, as CreateChild
// has it. It fails if another object controls the present one.
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

// Apply applies the fields that an object has by server-side apply; the actor's name is the field
// manager. The object becomes the API server's answer.
func Apply[O, T Object](ctx Context[T], o O) error {
	if err := ctx.run.alive(); err != nil {
		return err
	}
	return ctx.run.write(ctx, verbApply, o, "requested", ctx.Apply)
}

// Delete deletes an object that was read.
func Delete[O, T Object](ctx Context[T], o O) error {
	return ctx.run.write(ctx, verbDelete, o, "requested", ctx.Delete)
}

// Cleanup deletes all objects of the declared types that the target controls, and reports whether
// none is left. It is for Finalize: it brings the target back when one of them is gone.
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

// types are the declared types, each once.
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

// alive returns ErrDeleted if the target is being deleted, as the cache shows it now.
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

// The verbs of writes in spans and Events.
const (
	verbCreate = "create"
	verbUpdate = "update"
	verbApply  = "apply"
	verbDelete = "delete"
)

// write carries out a write within a span, and notes it for the Event of the action.
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

// stripDependencies reduces the objects that an object passes to Require to their names.
func stripDependencies(o Object) {
	for _, d := range declaredDependencies(o) {
		if !d.unset {
			d.strip()
		}
	}
}
