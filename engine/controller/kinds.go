package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kindOf returns the kind of an object: the scheme's for a Go type, whether the object names it or
// not.
func (rt *Runtime) kindOf(o Object) (schema.GroupVersionKind, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return TypeFor(u.GroupVersionKind()).kind(rt.host.Scheme)
	}
	gvk, err := Type{of: reflect.TypeOf(o)}.kind(rt.host.Scheme)
	if err != nil {
		return gvk, err
	}
	if named := o.GetObjectKind().GroupVersionKind(); !named.Empty() && named != gvk {
		return gvk, fmt.Errorf("a %T has the kind %s, expected %s or none",
			o, object.KindString(named), object.KindString(gvk))
	}
	return gvk, nil
}

// resourceOf returns the resource of a kind. The controller need not declare it.
func (rt *Runtime) resourceOf(gvk schema.GroupVersionKind) (object.Resource, error) {
	if r, ok := rt.reader.declared[gvk]; ok {
		return r, nil
	}
	return rt.host.Resources.Kind(gvk)
}

// bodyOf returns an object as JSON values.
func bodyOf(gvk schema.GroupVersionKind, o Object) (map[string]any, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, withoutValue(err)
	}
	body, err := object.DecodeMap(data)
	if err != nil {
		return nil, err
	}
	body["apiVersion"], body["kind"] = gvk.ToAPIVersionAndKind()
	return body, nil
}

// withoutValue drops the value from an encoder's error: it may be secret.
func withoutValue(err error) error {
	var unsupported *json.UnsupportedValueError
	if errors.As(err, &unsupported) {
		return errors.New("it has a number that is no JSON, expected a finite one")
	}
	return err
}
