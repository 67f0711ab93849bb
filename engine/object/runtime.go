package object

import (
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

var _ runtime.Object = (*Object)(nil)

// kind is an Object's face towards API machinery. It cannot be set: an Object is immutable.
type kind struct{ gvk schema.GroupVersionKind }

func (k kind) SetGroupVersionKind(schema.GroupVersionKind) {}
func (k kind) GroupVersionKind() schema.GroupVersionKind   { return k.gvk }

// GetObjectKind implements runtime.Object, so that client-go's reflector can carry an Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return kind{o.GVK()} }

// DeepCopyObject implements runtime.Object. It returns o itself, which is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta implements metav1.ObjectMetaAccessor. What it returns cannot be changed.
func (o *Object) GetObjectMeta() metav1.Object { return (*readOnly)(o) }

// Meta is the metadata for code that asks for API machinery's interface. Each call decodes it. The
// caller must not change it.
func (o *Object) Meta() metav1.Object {
	m := &metav1.ObjectMeta{}
	_ = eachMember(o.Raw(), func(key string, value jsontext.Value) error { // it was decoded before
		if key != "metadata" {
			return nil
		}
		*m = metav1.ObjectMeta{} // of several the last one counts
		return kjson.UnmarshalCaseSensitivePreserveInts(value, m)
	})
	m.Name, m.Namespace, m.UID, m.ResourceVersion = o.Name(), o.Namespace(), o.UID(), o.ResourceVersion()
	m.Generation, m.Labels, m.Annotations = o.Generation(), o.Labels(), o.Annotations()
	m.OwnerReferences, m.Finalizers = o.OwnerReferences(), o.Finalizers()
	return m
}
