package controllertest

import (
	"context"
	"fmt"

	"github.com/hookloop/hookloop/engine/object"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// helperAgent is the user agent of the test's own requests, controllerAgent that of the
// controllers.
const (
	helperAgent     = "controllertest"
	controllerAgent = "controllertest-controllers"
)

// resource returns the resource of an object's type.
func (e *Env) resource(of Object) (object.Resource, error) {
	gvk := of.GetObjectKind().GroupVersionKind()
	if _, ok := of.(*unstructured.Unstructured); !ok {
		kinds, _, err := e.scheme.ObjectKinds(of)
		if err != nil {
			return object.Resource{}, fmt.Errorf("%T: %w; expected a type that Options.Scheme has", of, err)
		}
		gvk = kinds[0]
	}
	return e.process.Resources.Kind(gvk)
}

// resourceOf returns the client of the resource of an object, in a namespace.
func (e *Env) resourceOf(of Object, namespace string) (dynamic.ResourceInterface, object.Resource) {
	e.t.Helper()
	r, err := e.resource(of)
	if err != nil {
		if err := e.process.Discovery.Refresh(e.t.Context()); err != nil {
			e.t.Fatal(err)
		}
		r, err = e.resource(of)
		if err != nil {
			e.t.Fatal(err)
		}
	}
	client := e.client.Resource(r.GVK.GroupVersion().WithResource(r.Plural))
	if r.Namespaced {
		return client.Namespace(namespace), r
	}
	return client, r
}

// encode returns an object as a map, with its kind.
func (e *Env) encode(o Object, gvk schema.GroupVersionKind) *unstructured.Unstructured {
	e.t.Helper()
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		e.t.Fatalf("%T: %v", o, err)
	}
	out := (&unstructured.Unstructured{Object: content}).DeepCopy()
	out.SetGroupVersionKind(gvk)
	return out
}

// into fills an object with an answer of the API server.
func (e *Env) into(answer *unstructured.Unstructured, o Object) {
	e.t.Helper()
	if u, ok := o.(*unstructured.Unstructured); ok {
		u.Object = answer.Object
		return
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, o); err != nil {
		e.t.Fatalf("%T: %v", o, err)
	}
}

// newOf returns an empty object of a type.
func newOf[T Object](e *Env) T {
	e.t.Helper()
	var none T
	gvk, err := kindOf[T](e.scheme)
	if err != nil {
		e.t.Fatal(err)
	}
	o, err := e.scheme.New(gvk)
	if err != nil {
		e.t.Fatal(err)
	}
	typed, ok := o.(T)
	if !ok {
		e.t.Fatalf("the scheme makes a %T, expected a %T", o, none)
	}
	return typed
}

// Get returns an object. It fails the test if the object does not exist.
func Get[T Object](e *Env, key Key) T {
	e.t.Helper()
	o, err := Find[T](e, key)
	if err != nil {
		e.t.Fatal(err)
	}
	return o
}

// Find returns an object, or the error of the API server.
func Find[T Object](e *Env, key Key) (T, error) {
	e.t.Helper()
	o := newOf[T](e)
	client, _ := e.resourceOf(o, key.Namespace)
	answer, err := client.Get(e.t.Context(), key.Name, metav1.GetOptions{})
	if err != nil {
		var none T
		return none, err
	}
	e.into(answer, o)
	return o, nil
}

// List returns the objects of a namespace, or of all namespaces if it is empty, in the order of
// namespace and name.
func List[T Object](e *Env, namespace string) []T {
	e.t.Helper()
	client, _ := e.resourceOf(newOf[T](e), namespace)
	answer, err := client.List(e.t.Context(), metav1.ListOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	all := make([]T, 0, len(answer.Items))
	for i := range answer.Items {
		o := newOf[T](e)
		e.into(&answer.Items[i], o)
		all = append(all, o)
	}
	return all
}

// Create creates an object, and returns the answer of the API server. The namespace is created if
// it does not exist.
func Create[T Object](e *Env, o T) T {
	e.t.Helper()
	e.ensureNamespace(o.GetNamespace())
	create(e, o)
	return o
}

func create(e *Env, o Object) {
	e.t.Helper()
	client, r := e.resourceOf(o, o.GetNamespace())
	answer, err := client.Create(e.t.Context(), e.encode(o, r.GVK), metav1.CreateOptions{})
	if err != nil {
		e.t.Fatalf("create %s %s/%s: %v", r.GVK.Kind, o.GetNamespace(), o.GetName(), err)
	}
	e.into(answer, o)
}

// Update changes the present state of an object, and returns the answer of the API server. It
// changes the object again if another writer comes between.
func Update[T Object](e *Env, key Key, change func(T)) T {
	e.t.Helper()
	return update(e, key, change, dynamic.ResourceInterface.Update)
}

// UpdateStatus is Update for the status.
func UpdateStatus[T Object](e *Env, key Key, change func(T)) T {
	e.t.Helper()
	return update(e, key, change, func(
		c dynamic.ResourceInterface, ctx context.Context, o *unstructured.Unstructured, u metav1.UpdateOptions,
		_ ...string,
	) (*unstructured.Unstructured, error) {
		return c.UpdateStatus(ctx, o, u)
	})
}

// send is a method of a client that sends an object.
type send func(
	dynamic.ResourceInterface, context.Context, *unstructured.Unstructured, metav1.UpdateOptions, ...string,
) (*unstructured.Unstructured, error)

func update[T Object](e *Env, key Key, change func(T), with send) T {
	e.t.Helper()
	for {
		o := Get[T](e, key)
		change(o)
		client, r := e.resourceOf(o, key.Namespace)
		answer, err := with(client, e.t.Context(), e.encode(o, r.GVK), metav1.UpdateOptions{})
		switch {
		case apierrors.IsConflict(err):
			continue
		case err != nil:
			e.t.Fatalf("update %s %s: %v", r.GVK.Kind, key, err)
		}
		e.into(answer, o)
		return o
	}
}

// Delete deletes an object. Its dependents are deleted in the background.
func Delete[T Object](e *Env, key Key) {
	e.t.Helper()
	client, r := e.resourceOf(newOf[T](e), key.Namespace)
	background := metav1.DeletePropagationBackground
	err := client.Delete(e.t.Context(), key.Name, metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil {
		e.t.Fatalf("delete %s %s: %v", r.GVK.Kind, key, err)
	}
}

// ensureNamespace creates a namespace if it does not exist.
func (e *Env) ensureNamespace(name string) {
	e.t.Helper()
	if name == "" {
		return
	}
	client := e.client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	if _, err := client.Get(e.t.Context(), name, metav1.GetOptions{}); err == nil {
		return
	}
	namespace := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	namespace.SetName(name)
	_, err := client.Create(e.t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		e.t.Fatalf("namespace %s: %v", name, err)
	}
}

// define creates CustomResourceDefinitions on a real control plane, and waits until they are
// served.
func (e *Env) define(crds []*apiextensionsv1.CustomResourceDefinition) error {
	client := e.client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	for _, crd := range crds {
		o := e.encode(crd, apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
		unstructured.RemoveNestedField(o.Object, "status")
		_, err := client.Create(e.t.Context(), o, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("CustomResourceDefinition %s: %w", crd.Name, err)
		}
		e.await(e.t.Context(), "CustomResourceDefinition "+crd.Name, func() error {
			gvr := schema.GroupVersionResource{
				Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural,
			}
			_, err := e.client.Resource(gvr).List(e.t.Context(), metav1.ListOptions{})
			return err
		})
	}
	return nil
}
