// Package object stores Kubernetes API objects as JSON, with only the common metadata decoded.
//
// The engine holds every object that it watches, so an [Object] keeps the JSON that the API server
// sent and decodes the metadata once. To work with the rest of an object, decode it:
//
//	o, err := object.Decode(data)
//	if err != nil {
//		return err
//	}
//	fields, err := o.Map() // a fresh map[string]any that you may change
//
// [Object.Field] reads a single field without decoding the others. A [Set] holds many objects by
// kind, namespace and name. A [Ref] identifies an object and can be used as a map key.
//
// The package does not know kinds or schemas. All values are immutable once they are made, and safe
// for concurrent use. Functions that return a slice or a map return the stored one: callers must
// not change it.
package object

import (
	"hash/maphash"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// LastAppliedAnnotation is the annotation in which dynamic apply records the state that it wrote
// last. Metacontroller uses the same name, so Hookloop can continue with the objects of an
// installation that it replaces. The annotation is not part of [Object.Raw] and
// [Object.Annotations]; use [Object.LastApplied] to read it.
const LastAppliedAnnotation = "metacontroller.k8s.io/last-applied-configuration"

// Object is one API object, with its metadata decoded and its body kept as JSON. Use [Decode] or
// [FromMap] to make one; the zero value is not usable.
//
// A process may hold hundreds of thousands of objects. The fields are therefore as small as
// possible, and objects share equal values (see interned).
//
// Invariant: body begins with size bytes of a compact JSON object without metadata.managedFields
// and without LastAppliedAnnotation.
type Object struct {
	place *place
	// names holds the name, the UID and the resourceVersion, one after the other.
	names   string
	nameEnd uint32 // where the name ends in names
	uidEnd  uint32 // where the UID ends in names
	size    uint32 // the length of Raw
	// deleting is true if the object has a deletionTimestamp.
	deleting bool
	// hasLastApplied is true if LastApplied is not empty.
	hasLastApplied bool
	// body holds Raw, followed by LastApplied packed against Raw.
	body       []byte
	generation int64
	labels     map[string]string
	// owners and extra are nil for an object that has none.
	owners *[]metav1.OwnerReference
	extra  *extra
}

// place holds the kind and the namespace, which all objects of one kind and namespace share.
type place struct {
	gvk       schema.GroupVersionKind
	namespace string
}

// extra holds rarely used metadata, so that the common object stays small.
type extra struct {
	annotations map[string]string
	finalizers  []string
	applied     []applied
}

// noExtra is what objects without extra metadata return.
var noExtra extra

func (o *Object) extras() *extra {
	if o.extra == nil {
		return &noExtra
	}
	return o.extra
}

// applied holds the fields that one field manager owns through server-side apply.
type applied struct {
	manager  string
	fieldsV1 []byte
}

var hashSeed = maphash.MakeSeed()

// GVK returns the group, version and kind.
func (o *Object) GVK() schema.GroupVersionKind { return o.place.gvk }

// Ref returns the reference that identifies this object.
func (o *Object) Ref() Ref {
	return Ref{GVK: o.place.gvk, Namespace: o.place.namespace, Name: o.Name()}
}

// Namespace returns metadata.namespace. It is empty for a cluster-scoped object.
func (o *Object) Namespace() string { return o.place.namespace }

// Name returns metadata.name.
func (o *Object) Name() string { return o.names[:o.nameEnd] }

// UID returns metadata.uid. It is empty for an object that was never stored.
func (o *Object) UID() types.UID { return types.UID(o.names[o.nameEnd:o.uidEnd]) }

// ResourceVersion returns metadata.resourceVersion. It is empty for an object that was never stored.
func (o *Object) ResourceVersion() string { return o.names[o.uidEnd:] }

// Generation returns metadata.generation, or 0 if the resource does not count generations.
func (o *Object) Generation() int64 { return o.generation }

// Labels returns metadata.labels. The caller must not change the map.
func (o *Object) Labels() map[string]string { return o.labels }

// Annotations returns metadata.annotations without [LastAppliedAnnotation]. The caller must not
// change the map.
func (o *Object) Annotations() map[string]string { return o.extras().annotations }

// OwnerReferences returns metadata.ownerReferences. The caller must not change the slice.
func (o *Object) OwnerReferences() []metav1.OwnerReference {
	if o.owners == nil {
		return nil
	}
	return *o.owners
}

// ControllerRef returns the owner reference with controller=true, or nil if there is none. The
// caller must not change it.
func (o *Object) ControllerRef() *metav1.OwnerReference {
	owners := o.OwnerReferences()
	for i := range owners {
		if owners[i].Controller != nil && *owners[i].Controller {
			return &owners[i]
		}
	}
	return nil
}

// Finalizers returns metadata.finalizers. The caller must not change the slice.
func (o *Object) Finalizers() []string { return o.extras().finalizers }

// HasFinalizer reports whether metadata.finalizers contains name.
func (o *Object) HasFinalizer(name string) bool { return slices.Contains(o.extras().finalizers, name) }

// Deleting reports whether metadata.deletionTimestamp is set.
func (o *Object) Deleting() bool { return o.deleting }

// LastApplied returns the value of [LastAppliedAnnotation], which is JSON, or "" if the object does
// not have it. Each call unpacks the text again, so callers should keep the result.
func (o *Object) LastApplied() string {
	if !o.hasLastApplied {
		return ""
	}
	return unpack(o.Raw(), o.body[o.size:])
}

// LastAppliedIs reports whether [Object.LastApplied] equals text, which must not be empty. It does
// not allocate.
func (o *Object) LastAppliedIs(text []byte) bool {
	return o.hasLastApplied && isPacked(o.Raw(), o.body[o.size:], text)
}

// HasLastApplied reports whether the object has [LastAppliedAnnotation] with a value.
func (o *Object) HasLastApplied() bool { return o.hasLastApplied }

// Applied returns the fields that a manager owns through server-side apply, in the fieldsV1 format
// of metadata.managedFields. It returns nil if the manager owns none. The caller must not change
// the result.
func (o *Object) Applied(manager string) []byte {
	for _, a := range o.extras().applied {
		if a.manager == manager {
			return slices.Clip(a.fieldsV1)
		}
	}
	return nil
}

// Raw returns the object as compact JSON, without metadata.managedFields and
// [LastAppliedAnnotation]. The caller must not change it.
func (o *Object) Raw() []byte { return o.body[:o.size:o.size] }

// Hash returns a hash of [Object.Raw]. Hashes can be compared within one process only. Each call
// computes the hash again.
func (o *Object) Hash() uint64 { return maphash.Bytes(hashSeed, o.Raw()) }

// Size returns the length of [Object.Raw] in bytes.
func (o *Object) Size() int { return int(o.size) }

// Held returns how many bytes of JSON this object keeps in memory: [Object.Raw], the part of
// LastApplied that differs from it, and the fields of server-side apply.
func (o *Object) Held() int {
	n := len(o.body)
	for _, a := range o.extras().applied {
		n += len(a.manager) + len(a.fieldsV1)
	}
	return n
}
