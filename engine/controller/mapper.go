package controller

import (
	"context"
	"errors"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
)

// Mapper maps an event of a watched object to the keys that it affects. Mappers look at the old and
// at the new state of the object. If a mapper fails or panics, the event is not lost: all keys are
// reconciled, at the lowest priority. A function of a mapper that has not returned after 10 seconds
// fails, too.
type Mapper interface {
	// bind returns the mapper's function for one watch of a running controller.
	bind(b *binding) (mapFunc, error)
}

// mapFunc maps one event.
type mapFunc func(ctx context.Context, e cache.Event) ([]Key, error)

// binding is a watch of a controller that starts.
type binding struct {
	// primary is the controller's resource, watched that of the Watch.
	primary, watched object.Resource
	// reader reads the declared types, while the controller runs. Its reads are no references.
	reader Reader
	// index declares an index of a declared type.
	index func(AnyIndex) error
	// follow declares a function that is called for every event of the primary type, also for the
	// initial ones, before the mapper is called for the first time.
	follow func(mapper.Func[Key])
	// hung are the mappers that do not return; nil: there is no limit of their time.
	hung *hungMappers
}

// mapperFunc is a Mapper that is a function.
type mapperFunc func(b *binding) (mapFunc, error)

func (f mapperFunc) bind(b *binding) (mapFunc, error) { return f(b) }

// bind binds a mapper to a watch.
func bind(m Mapper, b *binding) (mapFunc, error) {
	if m == nil {
		return nil, errors.New("a mapper is nil")
	}
	return m.bind(b)
}

// SameName maps an object to the key with its namespace and name.
func SameName() Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		return func(_ context.Context, e cache.Event) ([]Key, error) {
			o := newest(e)
			key := Key{Name: o.Name()}
			if b.primary.Namespaced {
				key.Namespace = o.Namespace()
			}
			return []Key{key}, nil
		}, nil
	})
}

// OwnerOf maps an object to the key of the owner that controls it, and to that of the owner that
// controlled it before the event.
func OwnerOf() Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		owner := mapper.Owner(b.primary, keyOf)
		return func(_ context.Context, e cache.Event) ([]Key, error) { return owner(e.Old, e.New), nil }, nil
	})
}

// Multi maps an object to the keys of all of the mappers.
func Multi(all ...Mapper) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		var bound []mapFunc
		for _, m := range all {
			f, err := bind(m, b)
			if err != nil {
				return nil, err
			}
			bound = append(bound, f)
		}
		return func(ctx context.Context, e cache.Event) ([]Key, error) {
			var keys []Key
			var faults []error
			for _, f := range bound {
				more, err := mapSafely(ctx, f, e)
				keys = append(keys, more...)
				faults = append(faults, err)
			}
			return keys, errors.Join(faults...)
		}, nil
	})
}

// Map maps an object to the keys that a function returns. before is nil for an added object, now is
// nil for a deleted one. A state that does not fit U is nil, too, and counts as a failure. The
// context ends after 10 seconds.
func Map[U Object](f func(ctx context.Context, r Reader, before, now U) ([]Key, error)) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := fits(reflect.TypeFor[U](), b); err != nil {
			return nil, err
		}
		return b.limited(f, func(ctx context.Context, e cache.Event) ([]Key, error) {
			before, unfitBefore := decodeOrNil[U](e.Old)
			now, unfit := decodeOrNil[U](e.New)
			var keys []Key
			var err error
			if e.Old != nil && unfitBefore == nil || e.New != nil && unfit == nil { // one state is known
				keys, err = f(ctx, b.reader, before, now)
			}
			return keys, errors.Join(unfitBefore, unfit, err)
		}), nil
	})
}

// fits returns an error unless objects of the watched resource are of a Go type.
func fits(t reflect.Type, b *binding) error { return isType(t, b, b.watched) }

// isType returns an error unless objects of a resource are of a Go type.
func isType(t reflect.Type, b *binding, r object.Resource) error {
	if t == unstructuredType {
		return nil
	}
	gvk, err := (Type{of: t}).kind(b.reader.reading().scheme)
	if err == nil && gvk != r.GVK {
		err = &typeError{got: Type{of: t}.String(), want: object.KindString(r.GVK), watched: r == b.watched}
	}
	return err
}

// typeError reports a mapper of another type than that of its watch or of its controller.
type typeError struct {
	got, want string
	watched   bool
}

func (e *typeError) Error() string {
	if !e.watched {
		return "the mapper takes " + e.got + ", expected the type of the controller's " + e.want
	}
	return "the mapper takes " + e.got + ", expected the type of the watched " + e.want
}

func decodeOrNil[U Object](o *object.Object) (U, error) {
	if o == nil {
		var none U
		return none, nil
	}
	return decode[U](o)
}

// newest returns the object of an event in its newest state.
func newest(e cache.Event) *object.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// keyOf returns the key of an object.
func keyOf(r object.Ref) Key { return Key{Namespace: r.Namespace, Name: r.Name} }
