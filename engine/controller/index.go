package controller

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/panics"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AnyIndex accepts an [Index] of any type, so that a controller can declare several in one list.
type AnyIndex interface {
	// indexed returns the type of the indexed objects, values the type of their values, and raw the
	// index in the cache.
	indexed() Type
	values() reflect.Type
	raw() *view.Index
}

// Index finds objects of type T by values of type V, without looking at all objects. Declare it
// when you build the controller; then call [By] in a reconcile, or use it in a mapper. Several
// controllers may declare the same Index.
type Index[T Object, V comparable] struct {
	of    Type
	index *view.Index
}

// unindexable marks objects whose values are not known, because they cannot be decoded into T or
// because the function panicked. By fails while there is such an object.
const unindexable = "\x00unindexable"

// NewIndex makes an index for a Go type. values returns the values under which an object should be
// found; its result must depend on the object alone. The name is used in messages.
func NewIndex[T Object, V comparable](name string, values func(T) []V) *Index[T, V] {
	return newIndex(TypeOf[T](), name, values)
}

// NewIndexFor is like [NewIndex], for a kind without a Go type.
func NewIndexFor[V comparable](
	gvk schema.GroupVersionKind, name string, values func(*unstructured.Unstructured) []V,
) *Index[*unstructured.Unstructured, V] {
	return newIndex(TypeFor(gvk), name, values)
}

// IndexBy is like [NewIndex], for objects with at most one value. value returns false if an object
// should not be found at all.
func IndexBy[T Object, V comparable](name string, value func(T) (v V, has bool)) *Index[T, V] {
	return NewIndex(name, func(o T) []V {
		if v, has := value(o); has {
			return []V{v}
		}
		return nil
	})
}

// IndexByName makes an index for references by name to an object in the same namespace. refersTo
// returns the name; an empty name means that there is no reference.
func IndexByName[T Object](name string, refersTo func(T) string) *Index[T, Key] {
	return IndexBy(name, func(o T) (Key, bool) {
		key := Key{Namespace: o.GetNamespace(), Name: refersTo(o)}
		return key, key.Name != ""
	})
}

func newIndex[T Object, V comparable](of Type, name string, values func(T) []V) *Index[T, V] {
	i := &Index[T, V]{of: of}
	i.index = view.NewIndex(name, func(o *object.Object) []string {
		found, err := valuesOf(o, values)
		if err != nil {
			return []string{unindexable}
		}
		texts := make([]string, 0, len(found))
		for _, v := range found {
			texts = append(texts, text(v))
		}
		return texts
	})
	return i
}

// valuesOf calls values for one object.
func valuesOf[T Object, V comparable](o *object.Object, values func(T) []V) (found []V, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &panics.Error{Cause: fmt.Sprint(cause)}
		}
	}()
	typed, err := decode[T](o)
	if err != nil {
		return nil, err
	}
	return values(typed), nil
}

// text turns a value into a string. Different values have different strings.
func text(value any) string {
	switch v := value.(type) {
	case string:
		return "=" + v
	case Key:
		return "=" + strconv.Itoa(len(v.Namespace)) + " " + v.Namespace + v.Name
	}
	if v := reflect.ValueOf(value); v.Kind() == reflect.String {
		return "=" + v.String()
	}
	return fmt.Sprintf("=%#v", value)
}

// hasText returns an error if the text of such values could depend on something else than the
// value, such as an address in memory.
func hasText(t reflect.Type) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
		return fmt.Errorf("values of type %s, expected text, numbers, booleans, or structs and arrays of them", t)
	case reflect.Array:
		return hasText(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if err := hasText(t.Field(i).Type); err != nil {
				return fmt.Errorf("field %s: %w", t.Field(i).Name, err)
			}
		}
	}
	return nil
}

// Name returns the name that was given to NewIndex.
func (i *Index[T, V]) Name() string { return i.index.Name() }

func (i *Index[T, V]) indexed() Type        { return i.of }
func (i *Index[T, V]) values() reflect.Type { return reflect.TypeFor[V]() }
func (i *Index[T, V]) raw() *view.Index     { return i.index }

// By returns the objects that have the wanted value, ordered by namespace and name. The objects are
// copies, so you may change them. The controller must have declared the index.
func By[T Object, V comparable](r Reader, i *Index[T, V], wanted V) ([]T, error) {
	a := r.reading()
	if !a.indexes[i.index] {
		return nil, fmt.Errorf("controller %q does not declare the index %q; expected Index", a.controller, i.Name())
	}
	value := text(wanted)
	v, err := a.view(i.of, func(r object.Resource) { a.reads.index(r, i.index, value) })
	if err != nil {
		return nil, err
	}
	l, err := lookUp[T](v, i.index, value)
	if err != nil {
		return nil, err
	}
	return decodeAll[T](a, a.reads.saw(l))
}

// lookUp returns the objects that have this value. It fails if some objects could not be indexed,
// because each of them might have it.
func lookUp[T Object](v view.View, i *view.Index, value string) (view.List, error) {
	for o := range v.By(i, unindexable).All() {
		if _, err := decode[T](o); err != nil {
			return view.List{}, fmt.Errorf("index %q: %w", i.Name(), err)
		}
		return view.List{}, fmt.Errorf("index %q: its function panics for %s", i.Name(), o.Ref())
	}
	return v.By(i, value), nil
}

// checkIndex returns an error if a controller may not declare this index.
func checkIndex(i AnyIndex, declared func(Type) error) error {
	if i == nil || reflect.ValueOf(i).IsNil() {
		return errors.New("an index is nil")
	}
	err := declared(i.indexed())
	if err == nil {
		err = hasText(i.values())
	}
	if err != nil {
		return fmt.Errorf("index %q: %w", i.raw().Name(), err)
	}
	return nil
}
