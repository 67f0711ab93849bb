package controller

import (
	"context"
	"reflect"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Selection says which objects are selected: those in a namespace that match a label selector. The
// zero value selects no object.
type Selection struct {
	// Namespace is where to look; if it is empty, look in all namespaces.
	Namespace string
	// Selector matches the labels. If it is nil, no object is selected.
	Selector labels.Selector
}

// Selects reconciles the objects of the controller's type that select the watched object by its
// labels, before or after the event. Use it, for example, if your objects have a selector for Pods
// and you watch Pods. selection returns what an object of the controller's type selects.
//
// The selectors are kept in an index, so an event does not have to look at all of them. If
// selection panics for an object, or the object cannot be decoded into T, its key is reconciled at
// every event rather than lost.
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

// selectionOf returns what an object selects, and false if that is not known. A nil object selects
// no other.
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

// SelectedBy reconciles the objects that the watched object selects by their labels, before or
// after the event. Use it, for example, if you reconcile Pods and watch objects with a selector for
// them. selection returns what a watched object selects.
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
