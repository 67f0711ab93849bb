package controller

import (
	"fmt"
	"reflect"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Object is a Kubernetes object as a Go value: *appsv1.Deployment, a type of the user's own API, or
// *unstructured.Unstructured.
type Object interface {
	metav1.Object
	runtime.Object
}

// Key names an object within its type. The namespace of a cluster-scoped object is empty.
type Key = types.NamespacedName

// KeyOf returns the key of an object.
func KeyOf(o metav1.Object) Key { return Key{Namespace: o.GetNamespace(), Name: o.GetName()} }

// Type is a type of objects: a Go type, or a kind. The zero value is invalid.
type Type struct {
	of  reflect.Type
	gvk schema.GroupVersionKind
}

// TypeOf returns the Type of a Go type. The process's scheme must have it.
func TypeOf[T Object]() Type { return Type{of: reflect.TypeFor[T]()} }

// TypeFor returns the Type of a kind. Its objects are read as *unstructured.Unstructured.
func TypeFor(gvk schema.GroupVersionKind) Type { return Type{gvk: gvk} }

// unstructuredType is the Go type of objects without a Go type.
var unstructuredType = reflect.TypeFor[*unstructured.Unstructured]()

// String returns the Go type or the kind.
func (t Type) String() string {
	switch {
	case t.of != nil:
		return t.of.String()
	case t.gvk.Empty():
		return "no type"
	}
	return object.KindString(t.gvk)
}

// kind returns the kind of a type. The error describes the fault of the declaration.
func (t Type) kind(scheme *runtime.Scheme) (schema.GroupVersionKind, error) {
	none := schema.GroupVersionKind{}
	switch {
	case t.of == nil && (t.gvk.Version == "" || t.gvk.Kind == ""):
		return none, fmt.Errorf("type %s: got %q, expected a version and a kind", t, t.gvk)
	case t.of == nil:
		return t.gvk, nil
	case t.of == unstructuredType:
		return none, fmt.Errorf("type %s: has no kind; expected NewFor or TypeFor", t)
	case t.of.Kind() != reflect.Pointer || t.of.Elem().Kind() != reflect.Struct:
		return none, fmt.Errorf("type %s: got %s, expected a pointer to a struct", t, t.of.Kind())
	}
	o, _ := reflect.New(t.of.Elem()).Interface().(runtime.Object)
	kinds, _, err := scheme.ObjectKinds(o)
	switch {
	case runtime.IsNotRegisteredError(err):
		return none, fmt.Errorf("type %s: is not registered in the scheme; expected its AddToScheme to be called", t)
	case err != nil:
		return none, fmt.Errorf("type %s: %w", t, err)
	case len(kinds) > 1:
		return none, fmt.Errorf("type %s: the scheme has it as %v, expected one kind", t, kinds)
	}
	return kinds[0], nil
}
