package controllertest

import (
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOf returns the kind of a Go type.
func kindOf[T Object](scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	goType := reflect.TypeFor[T]()
	if goType.Kind() != reflect.Pointer {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s: expected a pointer to a struct", goType)
	}
	o, ok := reflect.New(goType.Elem()).Interface().(runtime.Object)
	if !ok {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s: expected an API object", goType)
	}
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s: %w; expected a type that Options.Scheme has", goType, err)
	}
	return kinds[0], nil
}
