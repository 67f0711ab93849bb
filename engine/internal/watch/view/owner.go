package view

import (
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Owner identifies an owner in the way in which Kubernetes scopes owner references: a namespaced
// object can own objects of its own namespace only, and a cluster-scoped one objects of any
// namespace. A UID alone does not identify an owner, because anybody may write a reference with a
// UID of another namespace into an object of their own.
//
// See "Owners and Dependents" in the documentation of Kubernetes.
type Owner struct {
	UID types.UID
	// Namespace is the owner's namespace. It is empty for a cluster-scoped owner.
	Namespace string
}

// OwnerOf returns the Owner that an object is for others.
func OwnerOf(o *object.Object) Owner { return Owner{UID: o.UID(), Namespace: o.Namespace()} }

// Reaches reports whether the owner can own an object of a namespace.
func (o Owner) Reaches(namespace string) bool { return o.Namespace == "" || o.Namespace == namespace }

// dependents holds the objects whose controller reference has one UID. As a rule they are in one
// namespace, and all is the only set.
type dependents struct {
	all ownedSet
	// namespace is where all objects are while byNamespace is nil.
	namespace string
	// byNamespace is made by the first object of a second namespace. It is kept from then on, so
	// that objects that come and go in another namespace cost their owner nothing.
	byNamespace map[string]*ownedSet
}

// set adds, replaces or, if o is nil, removes an object.
func (d *dependents) set(key id, o *object.Object) {
	if d.byNamespace == nil && d.all.empty() {
		d.namespace = key.namespace
	}
	if d.byNamespace == nil && d.namespace != key.namespace {
		d.split()
	}
	d.all.set(key, o)
	if d.byNamespace == nil {
		return
	}
	set := d.byNamespace[key.namespace]
	if set == nil {
		set = &ownedSet{}
		d.byNamespace[key.namespace] = set
	}
	set.set(key, o)
	if set.empty() {
		delete(d.byNamespace, key.namespace)
	}
}

// split begins to keep a set for each namespace.
func (d *dependents) split() {
	set := &ownedSet{}
	for _, o := range d.all.list() {
		set.set(idOf(o), o)
	}
	d.byNamespace = map[string]*ownedSet{d.namespace: set}
}

// of returns the objects that an owner can own; nil if there are none. It works on a nil receiver.
func (d *dependents) of(owner Owner) *ownedSet {
	switch {
	case d == nil:
		return nil
	case owner.Namespace == "":
		return &d.all
	case d.byNamespace != nil:
		return d.byNamespace[owner.Namespace]
	case d.namespace == owner.Namespace:
		return &d.all
	}
	return nil
}
