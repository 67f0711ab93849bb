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

// AnyIndex is an *Index of any type.
type AnyIndex interface {
	// indexed is the indexed type, values the type of its values, and raw the index of the cache.
	indexed() Type
	values() reflect.Type
	raw() *view.Index
}

// Index finds the objects of type T by values of type V. A controller declares it (Index), then By
// and mappers read it without a scan. One Index may serve several controllers.
type Index[T Object, V comparable] struct {
	of    Type
	index *view.Index
}

// unindexable is the value of objects without known values: they do not fit T, or the function
// panics for them. By fails if there is one.
const unindexable = "\x00unindexable"

// NewIndex returns an index of a Go type by the values that a function returns for an object. The
// name is for messages. The result of values must depend on the object alone.
func NewIndex[T Object, V comparable](name string, values func(T) []V) *Index[T, V] {
	return newIndex(TypeOf[T](), name, values)
}

// NewIndexFor is NewIndex for a kind without a Go type.
func NewIndexFor[V comparable](
	gvk schema.GroupVersionKind, name string, values func(*unstructured.Unstructured) []V,
) *Index[*unstructured.Unstructured, V] {
	return newIndex(TypeFor(gvk), name, values)
}

// IndexBy is NewIndex for objects that have one value or, if has is false, none.
func IndexBy[T Object, V comparable](name string, value func(T) (v V, has bool)) *Index[T, V] {
	return NewIndex(name, func(o T) []V {
		if v, has := value(o); has {
			return []V{v}
		}
		return nil
	})
}

// IndexByName returns an index of references that are the name of an object in the same namespace.
// An empty name is no reference.
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

// valuesOf returns the values of one object.
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

// text returns a value as a string. Different values have different strings.
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

// hasText returns an error if values of a type have no text that depends on the value alone.
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

// Name returns the name.
func (i *Index[T, V]) Name() string { return i.index.Name() }

func (i *Index[T, V]) indexed() Type        { return i.of }
func (i *Index[T, V]) values() reflect.Type { return reflect.TypeFor[V]() }
func (i *Index[T, V]) raw() *view.Index     { return i.index }

// By returns private copies of the objects for which an index has a value, in the order of
// namespace and name. The controller must declare the index.
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

// lookUp returns the objects for which an index has a value. It fails if there are objects without
// known values, because each of them may have this one.
func lookUp[T Object](v view.View, i *view.Index, value string) (view.List, error) {
	for o := range v.By(i, unindexable).All() {
		if _, err := decode[T](o); err != nil {
			return view.List{}, fmt.Errorf("index %q: %w", i.Name(), err)
		}
		return view.List{}, fmt.Errorf("index %q: its function panics for %s", i.Name(), o.Ref())
	}
	return v.By(i, value), nil
}

// checkIndex returns the fault of a declared index.
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
