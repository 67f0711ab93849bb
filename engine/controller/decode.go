package controller

import (
	"fmt"
	"maps"
	"reflect"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kjson "sigs.k8s.io/json"
)

// decode returns an object as a Go value of its own. The error is a *DecodeError.
func decode[T Object](o *object.Object) (T, error) { return decodeBy[T](nil, o) }

// decodeBy is decode with a memo, which may be nil.
func decodeBy[T Object](m *memo, o *object.Object) (T, error) {
	var none T
	decoded, err := m.read(reflect.TypeFor[T](), o)
	if err != nil {
		return none, err
	}
	typed, ok := decoded.(T)
	if !ok {
		return none, fmt.Errorf("%s: got %T, expected %s", o.Ref(), decoded, reflect.TypeFor[T]())
	}
	return typed, nil
}

// decodeAs is decode for a type that is known at run time only.
func decodeAs(t reflect.Type, o *object.Object) (Object, error) {
	fault := func(err error) error {
		return &DecodeError{Ref: o.Ref(), Type: Type{of: t}, Err: object.Explain(err)}
	}
	if t == unstructuredType {
		m, err := o.Map()
		if err != nil {
			return nil, fault(err)
		}
		return withLastApplied(&unstructured.Unstructured{Object: m}, o), nil
	}
	typed, ok := reflect.New(t.Elem()).Interface().(Object)
	if !ok {
		return nil, fmt.Errorf("%s: got the type %s, expected an Object", o.Ref(), t)
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.Raw(), typed); err != nil {
		return nil, fault(err)
	}
	return withLastApplied(typed, o), nil
}

// withLastApplied puts the annotation back that the cache holds apart from the body: an Update
// without it would remove it.
func withLastApplied(typed Object, o *object.Object) Object {
	if last := o.LastApplied(); last != "" {
		annotations := maps.Clone(typed.GetAnnotations())
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[object.LastAppliedAnnotation] = last
		typed.SetAnnotations(annotations)
	}
	return typed
}
