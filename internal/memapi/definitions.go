package memapi

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// define starts to serve the resources of a CustomResourceDefinition, and establishes it.
func (s *Server) define(o *stored) error {
	crd, err := definition(o.object)
	if err != nil {
		return err
	}
	gr := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	served := map[schema.GroupVersionResource]bool{}
	for _, v := range crd.Spec.Versions {
		if !v.Served {
			continue
		}
		r, err := newCustomResource(crd, v)
		if err != nil {
			return fmt.Errorf("CustomResourceDefinition %s: version %s: %w", crd.Name, v.Name, err)
		}
		served[r.gvr()] = true
		s.add(r)
	}
	for gvr := range s.resources {
		if gvr.GroupResource() == gr && !served[gvr] {
			delete(s.resources, gvr)
		}
	}
	if crd.DeletionTimestamp != nil {
		return s.undefine(o, crd)
	}
	return s.establish(o, crd)
}

// newCustomResource makes the resource for one version of a definition.
func newCustomResource(
	crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion,
) (*resource, error) {
	kind, err := newCustomKind(crd, v)
	if err != nil {
		return nil, err
	}
	names := crd.Spec.Names
	r := &resource{
		gvk:    schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: names.Kind},
		plural: names.Plural, singular: names.Singular, listKind: listKindOf(names), shortNames: names.ShortNames,
		category: names.Categories, custom: kind,
		traits: traits{
			namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, generation: true, conditional: true,
		},
	}
	if sub := v.Subresources; sub != nil {
		r.status = sub.Status != nil
		if sub.Scale != nil {
			r.scale = &scale{specReplicas: sub.Scale.SpecReplicasPath, statusReplicas: sub.Scale.StatusReplicasPath}
			if sub.Scale.LabelSelectorPath != nil {
				r.scale.selector = *sub.Scale.LabelSelectorPath
			}
		}
	}
	kind.scale = r.scale
	for _, f := range v.SelectableFields {
		r.fields = append(r.fields, f.JSONPath[1:])
	}
	return r, nil
}

// establish writes the status of a definition.
func (s *Server) establish(o *stored, crd *apiextensionsv1.CustomResourceDefinition) error {
	status := apiextensionsv1.CustomResourceDefinitionStatus{
		AcceptedNames: crd.Spec.Names, StoredVersions: crd.Status.StoredVersions, Conditions: crd.Status.Conditions,
	}
	status.AcceptedNames.ListKind = listKindOf(crd.Spec.Names)
	if len(status.Conditions) == 0 {
		status.Conditions = []apiextensionsv1.CustomResourceDefinitionCondition{
			condition(apiextensionsv1.NamesAccepted, "NoConflicts", "no conflicts found"),
			condition(apiextensionsv1.Established, "InitialNamesAccepted", "the initial names have been accepted"),
		}
	}
	for _, v := range crd.Spec.Versions {
		if v.Storage && !slices.Contains(status.StoredVersions, v.Name) {
			status.StoredVersions = append(status.StoredVersions, v.Name)
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil || reflect.DeepEqual(content, o.object.Object["status"]) {
		return err
	}
	object := o.object.DeepCopy()
	object.Object["status"] = content
	_, err = s.put(o.collection, o, object)
	return err
}

// undefine deletes the objects of a definition that is being deleted, and then the definition.
func (s *Server) undefine(o *stored, crd *apiextensionsv1.CustomResourceDefinition) error {
	c := s.collections[schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}]
	if c == nil || !slices.Contains(crd.Finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return nil
	}
	for _, k := range keys(c.objects, "") {
		if object := c.objects[k]; object != nil && object.object.GetDeletionTimestamp() == nil {
			if err := s.eraseAs(crdFinalizer, object, metav1.DeletePropagationBackground); err != nil {
				return err
			}
		}
	}
	if len(c.objects) > 0 {
		return nil
	}
	return s.dropFinalizer(crdFinalizer, o, apiextensionsv1.CustomResourceCleanupFinalizer)
}

// withdraw stops serving the resources of a definition that is gone.
func (s *Server) withdraw(object *unstructured.Unstructured) {
	crd, err := definition(object)
	if err != nil {
		return
	}
	gr := schema.GroupResource{Group: crd.Spec.Group, Resource: crd.Spec.Names.Plural}
	for gvr := range s.resources {
		if gvr.GroupResource() == gr {
			delete(s.resources, gvr)
		}
	}
	if c := s.collections[gr]; c != nil {
		c.dropWatches()
		delete(s.collections, gr)
	}
}

// definitionOf returns the definition of a collection, or nil for a built-in resource.
func (s *Server) definitionOf(c *collection) *stored {
	return s.collections[definitions].objects[key{"", c.name.Resource + "." + c.name.Group}]
}

// Definition makes a CustomResourceDefinition without a schema, for tests that only need the kind
// to exist.
func Definition(
	gvk schema.GroupVersionKind, plural string, namespaced, status bool,
) *apiextensionsv1.CustomResourceDefinition {
	keep := true
	scope := apiextensionsv1.ClusterScoped
	if namespaced {
		scope = apiextensionsv1.NamespaceScoped
	}
	v := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: gvk.Version, Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &keep},
		},
	}
	if status {
		v.Subresources = &apiextensionsv1.CustomResourceSubresources{
			Status: &apiextensionsv1.CustomResourceSubresourceStatus{},
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	crd.Name = plural + "." + gvk.Group
	crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
		Group: gvk.Group, Scope: scope, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{v},
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: gvk.Kind},
	}
	return crd
}
