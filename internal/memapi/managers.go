package memapi

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// fieldManager returns the manager of a resource's fields, or of a subresource's.
func (s *Server) fieldManager(r *resource, subresource string) (*managedfields.FieldManager, error) {
	if m := r.managers[subresource]; m != nil {
		return m, nil
	}
	types := s.typed
	switch {
	case r.custom != nil:
		types = r.custom.types
	case r.groupResource() == definitions:
		types = managedfields.NewDeducedTypeConverter()
	}
	m, err := managedfields.NewDefaultCRDFieldManager(types, converter{s}, defaulter{r}, creator{s}, r.gvk,
		r.gvk.GroupVersion(), subresource, fieldpath.NewExcludeFilterSetMap(resetFields(r, subresource)))
	if err != nil {
		return nil, fmt.Errorf("field manager of %s: %w", r.groupResource(), err)
	}
	r.managers[subresource] = m
	return m, nil
}

// resetFields returns the fields that a write ignores, so that its manager does not own them.
func resetFields(r *resource, subresource string) map[fieldpath.APIVersion]*fieldpath.Set {
	reset := fieldpath.NewSet()
	switch {
	case subresource == "status" && r.custom != nil:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
	case subresource == "status":
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata", "labels"))
	case r.status:
		reset = fieldpath.NewSet(fieldpath.MakePathOrDie("status"))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{fieldpath.APIVersion(r.gvk.GroupVersion().String()): reset}
}

// managed returns an updated object with the fields that the request's manager owns now.
func (s *Server) managed(q *request, live, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	m, err := s.fieldManager(q.resource, q.Subresource)
	if err != nil {
		return nil, err
	}
	out, ok := m.UpdateNoErrors(live, object, q.manager()).(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the field manager returned a %T", object)
	}
	return out, nil
}

// converter converts objects between the versions of a resource, which differ in apiVersion only.
type converter struct{ server *Server }

func (converter) Convert(in, out, _ any) error {
	from, ok := in.(*unstructured.Unstructured)
	to, also := out.(*unstructured.Unstructured)
	if !ok || !also {
		return fmt.Errorf("cannot convert a %T to a %T", in, out)
	}
	to.Object = from.DeepCopy().Object
	return nil
}

func (c converter) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	object, ok := in.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("cannot convert a %T", in)
	}
	gvk, ok := to.KindForGroupVersionKinds([]schema.GroupVersionKind{object.GroupVersionKind()})
	if !ok || c.server.ofKind(gvk) == nil {
		return nil, runtime.NewNotRegisteredErrForTarget("memapi", nil, to)
	}
	if gvk == object.GroupVersionKind() {
		return object, nil
	}
	out := object.DeepCopy()
	out.SetGroupVersionKind(gvk)
	return out, nil
}

func (converter) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return runtime.DefaultMetaV1FieldSelectorConversion(label, value)
}

// defaulter sets the defaults of a schema.
type defaulter struct{ resource *resource }

func (d defaulter) Default(in runtime.Object) {
	if object, ok := in.(*unstructured.Unstructured); ok && d.resource.custom != nil {
		d.resource.custom.setDefaults(object)
	}
}

// creator makes empty objects.
type creator struct{ server *Server }

func (c creator) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	r := c.server.ofKind(gvk)
	if r == nil {
		return nil, runtime.NewNotRegisteredErrForKind("memapi", gvk)
	}
	return c.server.blank(r), nil
}

// blank returns an object without content. That of a built-in resource has the empty structs of its
// Go type.
func (s *Server) blank(r *resource) *unstructured.Unstructured {
	if r.custom == nil {
		if typed, err := s.scheme.New(r.gvk); err == nil {
			if object, err := s.generic(r, typed); err == nil {
				return object
			}
		}
	}
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(r.gvk)
	return object
}

// convert returns an object in the version of the resource; same if it is in that version already.
func (r *resource) convert(object *unstructured.Unstructured) (converted *unstructured.Unstructured, same bool) {
	if object.GroupVersionKind() == r.gvk {
		return object, true
	}
	out := object.DeepCopy()
	out.SetGroupVersionKind(r.gvk)
	if r.custom != nil {
		_, _ = r.custom.coerce(out) // it was valid when it was stored
		r.custom.setDefaults(out)
	}
	return out, false
}
