package controller

import (
	"context"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/act"
	"k8s.io/apimachinery/pkg/api/equality"
)

// CreateOrUpdate creates an object, or updates the present one: mutate sets the desired fields of
// either. It writes nothing if mutate changes nothing. The object becomes the present one. The
// controller must declare its type.
//
// For a present object, mutate should set single fields rather than replace the whole spec:
// defaults that the API server has set would be removed, and each call would write.
func CreateOrUpdate[O Object](ctx context.Context, rt *Runtime, o O, mutate func(O) error) error {
	present, err := Get[O](rt, KeyOf(o))
	if IsNotFound(err) {
		if err := act.Mutate(o, mutate); err != nil {
			return err
		}
		return rt.Create(ctx, o)
	}
	if err != nil {
		return err
	}
	before := present.DeepCopyObject()
	if err := act.Mutate(present, mutate); err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(before, present) {
		err = rt.Update(ctx, present)
	}
	if err == nil {
		reflect.ValueOf(o).Elem().Set(reflect.ValueOf(present).Elem())
	}
	return err
}

// CreateOrUpdateChild is CreateOrUpdate with owner as the object's controller, so that it is
// deleted with the owner. An empty namespace becomes the owner's. It fails if another object
// controls the present one.
func CreateOrUpdateChild[O Object](ctx context.Context, rt *Runtime, owner Object, o O, mutate func(O) error) error {
	if o.GetNamespace() == "" {
		o.SetNamespace(owner.GetNamespace())
	}
	return CreateOrUpdate(ctx, rt, o, func(o O) error {
		if err := mutate(o); err != nil {
			return err
		}
		return rt.Own(owner, o)
	})
}
