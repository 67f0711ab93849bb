package controller

import (
	"context"
	"errors"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Target is the value of an index of references: the key of an object of the watched type, or a
// Reference, which names its type, too.
type Target interface{ Key | Reference }

// RefersTo maps a watched object to the keys of the objects that refer to it, as an index of the
// controller's type finds them. The mapper declares the index. For a reference that is only a name,
// see IndexByName.
func RefersTo[T Object, V Target](i *Index[T, V]) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := b.primaryIndex(i); err != nil {
			return nil, err
		}
		return func(_ context.Context, e cache.Event) ([]Key, error) {
			return indexed(b, i, targetOf[V](newest(e).Ref()))
		}, nil
	})
}

// targetOf returns the value with which objects refer to one.
func targetOf[V Target](r object.Ref) (v V) {
	switch to := any(&v).(type) {
	case *Key:
		*to = keyOf(r)
	case *Reference:
		*to = referenceTo(r)
	}
	return v
}

// ReferredBy maps a watched object to the keys that it refers to, before and after the event.
func ReferredBy[U Object](refers func(U) []Key) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := fits(reflect.TypeFor[U](), b); err != nil {
			return nil, err
		}
		return b.limited(refers, func(_ context.Context, e cache.Event) ([]Key, error) {
			return eachState(e, func(u U) ([]Key, error) { return refers(u), nil })
		}), nil
	})
}

// ByIndex maps a watched object to the keys of the objects for which an index of the controller's
// type has a value that the watched object has, before or after the event. The mapper declares the
// index.
func ByIndex[T, U Object, V comparable](i *Index[T, V], values func(U) []V) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := b.primaryIndex(i); err != nil {
			return nil, err
		}
		if err := fits(reflect.TypeFor[U](), b); err != nil {
			return nil, err
		}
		return b.limited(values, func(_ context.Context, e cache.Event) ([]Key, error) {
			return eachState(e, func(u U) ([]Key, error) {
				var keys []Key
				for _, v := range values(u) {
					more, err := indexed(b, i, v)
					if err != nil {
						return nil, err
					}
					keys = append(keys, more...)
				}
				return keys, nil
			})
		}), nil
	})
}

// OwnedBy maps a watched object to the keys of the objects that it controls.
func OwnedBy() Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		return func(_ context.Context, e cache.Event) ([]Key, error) {
			v, err := b.view()
			if err != nil {
				return nil, err
			}
			var keys []Key
			for _, o := range states(e) {
				keys = append(keys, keysOf(v.OwnedBy(view.OwnerOf(o)))...)
			}
			return keys, nil
		}, nil
	})
}

// primaryIndex declares an index of a mapper, which must be one of the controller's type.
func (b *binding) primaryIndex(i AnyIndex) error {
	if err := b.index(i); err != nil {
		return err
	}
	gvk, err := i.indexed().kind(b.reader.reading().scheme)
	if err == nil && gvk != b.primary.GVK {
		err = &indexTypeError{index: i.raw().Name(), got: i.indexed().String(), primary: object.KindString(b.primary.GVK)}
	}
	return err
}

// indexTypeError reports a mapper with an index of another type than the controller's.
type indexTypeError struct{ index, got, primary string }

func (e *indexTypeError) Error() string {
	return "the mapper's index " + e.index + " is of " + e.got + ", expected the controller's type " + e.primary
}

// view returns the view of the controller's type.
func (b *binding) view() (view.View, error) { return b.reader.reading().views.View(b.primary) }

// indexed returns the keys for which an index has a value.
func indexed[T Object, V comparable](b *binding, i *Index[T, V], value V) ([]Key, error) {
	v, err := b.view()
	if err != nil {
		return nil, err
	}
	l, err := lookUp[T](v, i.index, text(value))
	return keysOf(l), err
}

func keysOf(l view.List) []Key {
	keys := make([]Key, 0, l.Len())
	for o := range l.All() {
		keys = append(keys, keyOf(o.Ref()))
	}
	return keys
}

// states returns the object of an event before and after it, as far as it exists.
func states(e cache.Event) []*object.Object {
	var all []*object.Object
	for _, o := range []*object.Object{e.Old, e.New} {
		if o != nil {
			all = append(all, o)
		}
	}
	return all
}

// eachState returns the keys of both states of an event's object. It returns those of the one state
// even if the other one fails.
func eachState[U Object](e cache.Event, keysOf func(U) ([]Key, error)) ([]Key, error) {
	var keys []Key
	var faults []error
	for _, o := range states(e) {
		more, err := oneState(o, keysOf)
		keys = append(keys, more...)
		faults = append(faults, err)
	}
	return keys, errors.Join(faults...)
}

// oneState returns the keys of one state. A panic is an error.
func oneState[U Object](o *object.Object, keysOf func(U) ([]Key, error)) (keys []Key, err error) {
	defer recoverMapper(&err)
	typed, err := decode[U](o)
	if err != nil {
		return nil, err
	}
	return keysOf(typed)
}
