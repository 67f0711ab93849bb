package controller

import (
	"context"
	"errors"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
)

// Mapper decides which keys to reconcile when a watched object changes. Use [SameName], [OwnerOf],
// [Selects] or [SelectedBy] where one of them fits, [Map] for a function of your own, and [Multi]
// to combine several.
//
// A mapper sees the object as it was before the event and as it is now. If a mapper fails, panics
// or does not return within 10 seconds, the event is not lost: all keys are reconciled, at the
// lowest priority.
type Mapper interface {
	// bind returns the function that maps the events of one watch, while a controller runs.
	bind(b *binding) (mapFunc, error)
}

// mapFunc returns the keys that one event affects.
type mapFunc func(ctx context.Context, e cache.Event) ([]Key, error)

// binding describes one watch of a controller that is starting.
type binding struct {
	// primary is the resource that the controller reconciles. watched is the resource of the Watch.
	primary, watched object.Resource
	// reader reads objects of the declared types while the controller runs. Reads through it do not
	// become references.
	reader Reader
	// index declares an index of a declared type.
	index func(AnyIndex) error
	// follow registers a function that sees every event of the primary type, including the initial
	// ones. It is called before the mapper sees its first event.
	follow func(mapper.Func[Key])
	// hung counts mappers that do not return. If it is nil, mappers may take any time.
	hung *hungMappers
}

// mapperFunc lets a function serve as a Mapper.
type mapperFunc func(b *binding) (mapFunc, error)

func (f mapperFunc) bind(b *binding) (mapFunc, error) { return f(b) }

// bind binds a mapper to a watch.
func bind(m Mapper, b *binding) (mapFunc, error) {
	if m == nil {
		return nil, errors.New("a mapper is nil")
	}
	return m.bind(b)
}

// SameName reconciles the key with the same namespace and name as the watched object.
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

// OwnerOf reconciles the owner that controls the watched object. If the owner has changed, it
// reconciles the previous one, too.
func OwnerOf() Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		owner := mapper.Owner(b.primary, keyOf)
		return func(_ context.Context, e cache.Event) ([]Key, error) { return owner(e.Old, e.New), nil }, nil
	})
}

// Multi calls all of the given mappers and reconciles the keys that any of them returns.
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

// Map calls f to find the keys to reconcile. before is nil if the object was added, and now is nil
// if it was deleted. A state that cannot be decoded into U is nil, too, and counts as a failure.
//
// f should return soon: its context ends after 10 seconds.
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

// fits returns an error if the watched objects do not have the Go type t.
func fits(t reflect.Type, b *binding) error { return isType(t, b, b.watched) }

// isType returns an error if objects of resource r do not have the Go type t.
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

// typeError says that a mapper was made for a different type than its watch or its controller has.
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

// newest returns the object as it is after the event, or as it was last if it was deleted.
func newest(e cache.Event) *object.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// keyOf returns the key of an object.
func keyOf(r object.Ref) Key { return Key{Namespace: r.Namespace, Name: r.Name} }
