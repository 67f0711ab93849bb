// Package object holds a Kubernetes API object the way the engine carries it: raw first. The
// metadata is decoded once, on entry; the body stays the JSON that the API server sent, so that an
// object which enters and leaves unchanged is never decoded, and equality is a comparison of bytes.
//
// It is not a typed API machinery: it knows no kinds and no schemas. Its data comes from the watch
// (package cache), from answers of hooks, and from responses to writes (package act).
//
// Every exported value is immutable after construction and safe for concurrent use. The tests
// beside the files and a fuzz target cover the decoding; a benchmark prints bytes and allocations
// per object.
package object

import (
	"hash/maphash"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// LastAppliedAnnotation is where dynamic apply keeps the desired state that it wrote last. The name
// is Metacontroller's, so that Hookloop continues with the objects of a replaced installation.
// Objects keep its value (LastApplied), without the parts that the body has, and the used part of
// managedFields (Applied), beside the body.
const LastAppliedAnnotation = "metacontroller.k8s.io/last-applied-configuration"

// Object is one API object: metadata decoded, body raw. The zero value is not usable; Decode and
// FromMap are the doors. Invariant: raw is a compact JSON object without metadata.managedFields and
// without LastAppliedAnnotation.
type Object struct {
	gvk  schema.GroupVersionKind
	meta metav1.ObjectMeta
	raw  []byte
	// lastApplied is packed with raw as its base; nil if there is none.
	lastApplied []byte
	applied     []applied
	hash        uint64
}

// applied are the fields that a field manager has applied by server-side apply.
type applied struct {
	manager  string
	fieldsV1 []byte
}

var hashSeed = maphash.MakeSeed()

// GVK is the object's group, version and kind.
func (o *Object) GVK() schema.GroupVersionKind { return o.gvk }

// Ref names the object.
func (o *Object) Ref() Ref { return Ref{GVK: o.gvk, Namespace: o.meta.Namespace, Name: o.meta.Name} }

// Namespace is metadata.namespace; empty for a cluster-scoped object.
func (o *Object) Namespace() string { return o.meta.Namespace }

// Name is metadata.name.
func (o *Object) Name() string { return o.meta.Name }

// UID is metadata.uid; empty for an object that no API server has stored.
func (o *Object) UID() types.UID { return o.meta.UID }

// ResourceVersion is metadata.resourceVersion; empty for an object that no API server has stored.
func (o *Object) ResourceVersion() string { return o.meta.ResourceVersion }

// Generation is metadata.generation; 0 if the resource does not count generations.
func (o *Object) Generation() int64 { return o.meta.Generation }

// Labels are metadata.labels. The caller must not change the map.
func (o *Object) Labels() map[string]string { return o.meta.Labels }

// Annotations are metadata.annotations without LastAppliedAnnotation. The caller must not change
// the map.
func (o *Object) Annotations() map[string]string { return o.meta.Annotations }

// OwnerReferences are metadata.ownerReferences. The caller must not change the slice.
func (o *Object) OwnerReferences() []metav1.OwnerReference { return o.meta.OwnerReferences }

// ControllerRef is the owner reference with controller=true, or nil.
func (o *Object) ControllerRef() *metav1.OwnerReference { return metav1.GetControllerOfNoCopy(&o.meta) }

// Finalizers are metadata.finalizers. The caller must not change the slice.
func (o *Object) Finalizers() []string { return o.meta.Finalizers }

// HasFinalizer reports whether metadata.finalizers contains name.
func (o *Object) HasFinalizer(name string) bool {
	for _, f := range o.meta.Finalizers {
		if f == name {
			return true
		}
	}
	return false
}

// Deleting reports whether metadata.deletionTimestamp is set.
func (o *Object) Deleting() bool { return o.meta.DeletionTimestamp != nil }

// LastApplied is the value of LastAppliedAnnotation: JSON, or empty if the object does not carry
// it. Each call makes the text anew.
func (o *Object) LastApplied() string {
	if o.lastApplied == nil {
		return ""
	}
	return unpack(o.raw, o.lastApplied)
}

// HasLastApplied reports whether LastApplied is not empty.
func (o *Object) HasLastApplied() bool { return o.lastApplied != nil }

// Applied are the fields that a field manager has applied by server-side apply, as fieldsV1 of
// metadata.managedFields; nil if it has not. The caller must not change them.
func (o *Object) Applied(manager string) []byte {
	for _, a := range o.applied {
		if a.manager == manager {
			return a.fieldsV1
		}
	}
	return nil
}

// Raw is the object as compact JSON, without managedFields and LastAppliedAnnotation. The caller
// must not change it.
func (o *Object) Raw() []byte { return o.raw }

// Hash is a hash of Raw; equal bytes have equal hashes within one process.
func (o *Object) Hash() uint64 { return o.hash }

// Size is the length of Raw in bytes.
func (o *Object) Size() int { return len(o.raw) }

// Held is the size in bytes of all that the object keeps of its JSON: Raw, the part of LastApplied
// that Raw does not have, and what Applied returns.
func (o *Object) Held() int {
	n := len(o.raw) + len(o.lastApplied)
	for _, a := range o.applied {
		n += len(a.manager) + len(a.fieldsV1)
	}
	return n
}

// Meta is the decoded metadata as API machinery's interface, for code that asks for it. The caller
// must not change it.
func (o *Object) Meta() metav1.Object { return &o.meta }
