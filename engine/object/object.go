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
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// LastAppliedAnnotation is where dynamic apply keeps the desired state that it wrote last. The name
// is Metacontroller's, so that Hookloop continues with the objects of a replaced installation.
// Objects keep its value (LastApplied), without the parts that the body has, and the used part of
// managedFields (Applied), beside the body.
const LastAppliedAnnotation = "metacontroller.k8s.io/last-applied-configuration"

// Object is one API object: the metadata that is read often is decoded, the body is raw. The zero
// value is not usable; Decode and FromMap are the doors. There are many of them, so that each field
// has the size that it needs, and equal values of different objects are one (interned).
//
// Invariant: body begins with size bytes of a compact JSON object without metadata.managedFields
// and without LastAppliedAnnotation.
type Object struct {
	place *place
	// names are the name, the UID and the resourceVersion, one after the other.
	names             string
	nameEnd, uidEnd   uint32 // in names
	size              uint32 // of Raw
	deleting, carries bool   // carries reports that LastApplied is not empty
	// body is Raw, and then LastApplied, packed with Raw as its base.
	body       []byte
	generation int64
	labels     map[string]string
	// owners and more are nil for an object without them.
	owners *[]metav1.OwnerReference
	more   *more
}

// place is what all objects of a kind and a namespace have in common.
type place struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// more is what most objects do not have.
type more struct {
	annotations map[string]string
	finalizers  []string
	applied     []applied
}

// none is the more of objects that have nothing of it.
var none more

func (o *Object) rest() *more {
	if o.more == nil {
		return &none
	}
	return o.more
}

// applied are the fields that a field manager has applied by server-side apply.
type applied struct {
	manager  string
	fieldsV1 []byte
}

var hashSeed = maphash.MakeSeed()

// GVK is the object's group, version and kind.
func (o *Object) GVK() schema.GroupVersionKind { return o.place.gvk }

// Ref names the object.
func (o *Object) Ref() Ref {
	return Ref{GVK: o.place.gvk, Namespace: o.place.namespace, Name: o.Name()}
}

// Namespace is metadata.namespace; empty for a cluster-scoped object.
func (o *Object) Namespace() string { return o.place.namespace }

// Name is metadata.name.
func (o *Object) Name() string { return o.names[:o.nameEnd] }

// UID is metadata.uid; empty for an object that no API server has stored.
func (o *Object) UID() types.UID { return types.UID(o.names[o.nameEnd:o.uidEnd]) }

// ResourceVersion is metadata.resourceVersion; empty for an object that no API server has stored.
func (o *Object) ResourceVersion() string { return o.names[o.uidEnd:] }

// Generation is metadata.generation; 0 if the resource does not count generations.
func (o *Object) Generation() int64 { return o.generation }

// Labels are metadata.labels. The caller must not change the map.
func (o *Object) Labels() map[string]string { return o.labels }

// Annotations are metadata.annotations without LastAppliedAnnotation. The caller must not change
// the map.
func (o *Object) Annotations() map[string]string { return o.rest().annotations }

// OwnerReferences are metadata.ownerReferences. The caller must not change the slice.
func (o *Object) OwnerReferences() []metav1.OwnerReference {
	if o.owners == nil {
		return nil
	}
	return *o.owners
}

// ControllerRef is the owner reference with controller=true, or nil. The caller must not change it.
func (o *Object) ControllerRef() *metav1.OwnerReference {
	owners := o.OwnerReferences()
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return &owners[i]
		}
	}
	return nil
}

// Finalizers are metadata.finalizers. The caller must not change the slice.
func (o *Object) Finalizers() []string { return o.rest().finalizers }

// HasFinalizer reports whether metadata.finalizers contains name.
func (o *Object) HasFinalizer(name string) bool { return slices.Contains(o.rest().finalizers, name) }

// Deleting reports whether metadata.deletionTimestamp is set.
func (o *Object) Deleting() bool { return o.deleting }

// LastApplied is the value of LastAppliedAnnotation: JSON, or empty if the object does not carry
// it. Each call makes the text anew.
func (o *Object) LastApplied() string {
	if !o.carries {
		return ""
	}
	return unpack(o.Raw(), o.body[o.size:])
}

// LastAppliedIs reports whether LastApplied is a text that is not empty. It takes no memory.
func (o *Object) LastAppliedIs(text []byte) bool {
	return o.carries && isPacked(o.Raw(), o.body[o.size:], text)
}

// HasLastApplied reports whether LastApplied is not empty.
func (o *Object) HasLastApplied() bool { return o.carries }

// Applied are the fields that a field manager has applied by server-side apply, as fieldsV1 of
// metadata.managedFields; nil if it has not. The caller must not change them.
func (o *Object) Applied(manager string) []byte {
	for _, a := range o.rest().applied {
		if a.manager == manager {
			return slices.Clip(a.fieldsV1)
		}
	}
	return nil
}

// Raw is the object as compact JSON, without managedFields and LastAppliedAnnotation. The caller
// must not change it.
func (o *Object) Raw() []byte { return o.body[:o.size:o.size] }

// Hash is a hash of Raw; equal bytes have equal hashes within one process. Each call computes it.
func (o *Object) Hash() uint64 { return maphash.Bytes(hashSeed, o.Raw()) }

// Size is the length of Raw in bytes.
func (o *Object) Size() int { return int(o.size) }

// Held is the size in bytes of all that the object keeps of its JSON: Raw, the part of LastApplied
// that Raw does not have, and what Applied returns.
func (o *Object) Held() int {
	n := len(o.body)
	for _, a := range o.rest().applied {
		n += len(a.manager) + len(a.fieldsV1)
	}
	return n
}
