package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var _ runtime.Object = (*Object)(nil)

// kind is an Object's face towards API machinery. It cannot be set: an Object is immutable.
type kind struct{ gvk schema.GroupVersionKind }

func (k kind) SetGroupVersionKind(schema.GroupVersionKind) {}
func (k kind) GroupVersionKind() schema.GroupVersionKind   { return k.gvk }

// GetObjectKind implements runtime.Object, so that client-go's reflector can carry an Object.
func (o *Object) GetObjectKind() schema.ObjectKind { return kind{o.gvk} }

// DeepCopyObject implements runtime.Object. It returns o itself, which is immutable.
func (o *Object) DeepCopyObject() runtime.Object { return o }

// GetObjectMeta implements metav1.ObjectMetaAccessor.
func (o *Object) GetObjectMeta() metav1.Object { return &o.meta }
