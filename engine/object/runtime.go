package object

import (
	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

var _ runtime.Object = (*Object)(nil)

// kind implements schema.ObjectKind. Its setter does nothing, because an Object is immutable.
type kind struct{ gvk schema.GroupVersionKind }

func (k kind) SetGroupVersionKind(schema.GroupVersionKind) {}
func (k kind) GroupVersionKind() schema.GroupVersionKind   { return k.gvk }

// GetObjectKind implements [runtime.Object], so that client-go's reflector can hold an Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return kind{o.GVK()} }

// DeepCopyObject implements [runtime.Object]. It returns o itself, because o is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta implements [metav1.ObjectMetaAccessor]. The setters of the result do nothing.
func (o *Object) GetObjectMeta() metav1.Object { return (*readOnly)(o) }

// Meta decodes the metadata for code that needs [metav1.Object]. Each call decodes it again. The
// caller must not change the maps and slices in it.
func (o *Object) Meta() metav1.Object {
	m := &metav1.ObjectMeta{}
	_ = eachMember(o.Raw(), func(key string, value jsontext.Value) error { // it was decoded before
		if key != "metadata" {
			return nil
		}
		*m = metav1.ObjectMeta{} // if the member is repeated, the last one counts
		return kjson.UnmarshalCaseSensitivePreserveInts(value, m)
	})
	m.Name = o.Name()
	m.Namespace = o.Namespace()
	m.UID = o.UID()
	m.ResourceVersion = o.ResourceVersion()
	m.Generation = o.Generation()
	m.Labels = o.Labels()
	m.Annotations = o.Annotations()
	m.OwnerReferences = o.OwnerReferences()
	m.Finalizers = o.Finalizers()
	return m
}
