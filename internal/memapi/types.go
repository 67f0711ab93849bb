package memapi

import (
	"fmt"
	"maps"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// The names of models in an OpenAPI document, as references have them.
const (
	modelPrefix = "#/components/schemas/"
	metaModel   = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

// typesOf returns the converter for server-side apply of a custom resource: its own schema with the
// metadata of all objects.
func typesOf(gvk metav1.GroupVersionKind, structural *schema.Structural) (managedfields.TypeConverter, error) {
	root := structural.Unfold().ToKubeOpenAPI()
	if root.Properties == nil {
		root.Properties = map[string]spec.Schema{}
	}
	root.Properties["apiVersion"] = *spec.StringProperty()
	root.Properties["kind"] = *spec.StringProperty()
	root.Properties["metadata"] = *spec.RefSchema(modelPrefix + metaModel)
	root.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind},
	})
	models := metaModels()
	models["custom."+gvk.Kind] = root
	types, err := managedfields.NewTypeConverter(models, false)
	if err != nil {
		return nil, fmt.Errorf("schema of %s for server-side apply: %w", gvk.Kind, err)
	}
	return types, nil
}

// metaModels returns the models of the metadata, by the names that references have.
func metaModels() map[string]*spec.Schema {
	all := openapi.GetOpenAPIDefinitions(func(path string) spec.Ref { return spec.MustCreateRef(modelPrefix + path) })
	models := map[string]*spec.Schema{}
	collect(metaModel, all, models)
	return maps.Clone(models)
}

// collect adds a model and those that it needs.
func collect(name string, all map[string]common.OpenAPIDefinition, into map[string]*spec.Schema) {
	found, ok := all[name]
	if !ok || into[name] != nil {
		return
	}
	into[name] = &found.Schema
	for _, dependency := range found.Dependencies {
		collect(dependency, all, into)
	}
}
