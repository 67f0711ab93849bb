package controller

import (
	"fmt"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Own makes owner the controller of child, which must be written afterwards: Kubernetes deletes the
// child with its owner, and events of the child reconcile the owner (OwnerOf). An object has one
// controller at most. A namespaced owner owns objects of its own namespace only.
func (rt *Runtime) Own(owner, child Object) error {
	if isNil(owner) || isNil(child) {
		return fmt.Errorf("own: got a nil object, expected an owner and a child")
	}
	parent, err := rt.ownable(owner)
	if err != nil {
		return err
	}
	of, err := rt.ownable(child)
	if err != nil {
		return err
	}
	fault := func(format string, args ...any) error {
		return fmt.Errorf("own %s by %s: %s", of.ref, parent.ref, fmt.Sprintf(format, args...))
	}
	present := metav1.GetControllerOf(child)
	switch {
	case owner.GetUID() == "" || owner.GetName() == "":
		return fault("the owner has no name or no UID, expected an object that was read")
	case parent.Namespaced && !of.Namespaced:
		return fault("a namespaced object cannot own a cluster-scoped one")
	case parent.Namespaced && owner.GetNamespace() != child.GetNamespace():
		return fault("an owner must be in the namespace of its child; expected the namespace %q", owner.GetNamespace())
	case present != nil && present.UID != owner.GetUID():
		return fault("it is controlled by %s %q, expected no controller", present.Kind, present.Name)
	}
	references := slices.DeleteFunc(slices.Clone(child.GetOwnerReferences()),
		func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
	child.SetOwnerReferences(append(references, *metav1.NewControllerRef(owner, parent.ref.GVK)))
	return nil
}

// ownable is one side of an ownership.
type ownable struct {
	object.Resource
	ref object.Ref
}

func (rt *Runtime) ownable(o Object) (ownable, error) {
	gvk, err := rt.kindOf(o)
	if err != nil {
		return ownable{}, fmt.Errorf("own: %w", err)
	}
	r, err := rt.resourceOf(gvk)
	if err != nil {
		return ownable{}, fmt.Errorf("own: %w", err)
	}
	return ownable{r, object.Ref{GVK: gvk, Namespace: o.GetNamespace(), Name: o.GetName()}}, nil
}
