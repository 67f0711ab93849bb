package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// readOnly gives client-go's reflector access to the metadata of an Object, without decoding it for
// each event. The setters do nothing, because an Object is immutable. Fields that the reflector
// does not read are decoded on demand by Meta.
type readOnly Object

var _ metav1.Object = (*readOnly)(nil)

func (r *readOnly) object() *Object { return (*Object)(r) }

func (r *readOnly) GetNamespace() string              { return r.object().Namespace() }
func (r *readOnly) GetName() string                   { return r.object().Name() }
func (r *readOnly) GetUID() types.UID                 { return r.object().UID() }
func (r *readOnly) GetResourceVersion() string        { return r.object().ResourceVersion() }
func (r *readOnly) GetGeneration() int64              { return r.object().Generation() }
func (r *readOnly) GetLabels() map[string]string      { return r.object().Labels() }
func (r *readOnly) GetAnnotations() map[string]string { return r.object().Annotations() }
func (r *readOnly) GetFinalizers() []string           { return r.object().Finalizers() }
func (r *readOnly) GetOwnerReferences() []metav1.OwnerReference {
	return r.object().OwnerReferences()
}
func (r *readOnly) GetManagedFields() []metav1.ManagedFieldsEntry { return nil }

func (r *readOnly) GetGenerateName() string { return r.object().Meta().GetGenerateName() }
func (r *readOnly) GetSelfLink() string     { return r.object().Meta().GetSelfLink() }
func (r *readOnly) GetCreationTimestamp() metav1.Time {
	return r.object().Meta().GetCreationTimestamp()
}
func (r *readOnly) GetDeletionTimestamp() *metav1.Time {
	return r.object().Meta().GetDeletionTimestamp()
}
func (r *readOnly) GetDeletionGracePeriodSeconds() *int64 {
	return r.object().Meta().GetDeletionGracePeriodSeconds()
}

func (*readOnly) SetNamespace(string)                          {}
func (*readOnly) SetName(string)                               {}
func (*readOnly) SetGenerateName(string)                       {}
func (*readOnly) SetUID(types.UID)                             {}
func (*readOnly) SetResourceVersion(string)                    {}
func (*readOnly) SetGeneration(int64)                          {}
func (*readOnly) SetSelfLink(string)                           {}
func (*readOnly) SetCreationTimestamp(metav1.Time)             {}
func (*readOnly) SetDeletionTimestamp(*metav1.Time)            {}
func (*readOnly) SetDeletionGracePeriodSeconds(*int64)         {}
func (*readOnly) SetLabels(map[string]string)                  {}
func (*readOnly) SetAnnotations(map[string]string)             {}
func (*readOnly) SetFinalizers([]string)                       {}
func (*readOnly) SetOwnerReferences([]metav1.OwnerReference)   {}
func (*readOnly) SetManagedFields([]metav1.ManagedFieldsEntry) {}
