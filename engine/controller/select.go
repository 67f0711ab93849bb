package controller

import (
	"context"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection is the objects of a namespace that a label selector matches. The zero value selects
// nothing.
type Selection struct {
	// Namespace is empty for all namespaces.
	Namespace string
	// Selector may be nil; then nothing is selected.
	Selector labels.Selector
}

// Selects maps a watched object to the keys of the objects that select it by its labels, as it is
// or as it was before the event. selection returns what an object of the controller's type selects.
//
// The selectors are kept in an index, so that no event looks at all of them. An object for which
// selection panics, or which does not fit T, selects everything: its key is not lost.
func Selects[T Object](selection func(T) Selection) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := isType(reflect.TypeFor[T](), b, b.primary); err != nil {
			return nil, err
		}
		index := mapper.NewSelectors[Key]()
		b.follow(func(before, now *object.Object) []Key {
			switch s, ok := selectionOf(now, selection); {
			case !ok:
				index.Set(keyOf(now.Ref()), "", labels.Everything())
			case s.Selector == nil && before != nil:
				index.Delete(keyOf(before.Ref()))
			case s.Selector != nil:
				index.Set(keyOf(now.Ref()), s.Namespace, s.Selector)
			}
			return nil
		})
		return func(_ context.Context, e cache.Event) ([]Key, error) {
			var keys []Key
			for _, o := range states(e) {
				keys = append(keys, index.Match(o.Namespace(), o.Labels())...)
			}
			return keys, nil
		}, nil
	})
}

// selectionOf returns what an object selects, and whether that is known. nil selects nothing.
func selectionOf[T Object](o *object.Object, selection func(T) Selection) (s Selection, known bool) {
	if o == nil {
		return Selection{}, true
	}
	defer func() {
		if recover() != nil {
			s = Selection{}
			known = false
		}
	}()
	typed, err := decode[T](o)
	if err != nil {
		return Selection{}, false
	}
	return selection(typed), true
}

// SelectedBy maps a watched object to the keys of the objects that it selects by their labels,
// before or after the event. selection returns what a watched object selects.
func SelectedBy[U Object](selection func(U) Selection) Mapper {
	return mapperFunc(func(b *binding) (mapFunc, error) {
		if err := fits(reflect.TypeFor[U](), b); err != nil {
			return nil, err
		}
		return b.limited(selection, func(_ context.Context, e cache.Event) ([]Key, error) {
			return eachState(e, func(u U) ([]Key, error) {
				s := selection(u)
				if s.Selector == nil {
					return nil, nil
				}
				v, err := b.view()
				if err != nil {
					return nil, err
				}
				return keysOf(v.Select(s.Namespace, s.Selector)), nil
			})
		}), nil
	})
}
