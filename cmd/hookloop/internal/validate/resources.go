package validate

import (
	"context"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/catalog"
	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/object"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/utils/ptr"
)

// resources checks the resources that controllers name.
func (c *checker) resources(ctx context.Context, all []*manifest.Controller, crds []*manifest.CRD) error {
	known, err := catalog.New(ctx, crds)
	if err != nil {
		return err
	}
	for _, controller := range all {
		var namespaced *object.Resource
		for _, use := range controller.Uses() {
			r, found := known.Resource(use.Rule)
			switch {
			case !found:
				c.undeclared(controller, use, known)
			case use.Role == v1alpha1.RoleParent && r.Namespaced:
				namespaced = &r
			case use.Role != v1alpha1.RoleParent && !r.Namespaced && namespaced != nil && oneParent(controller):
				c.add(controller.Object, Error, use.Path,
					"%s: %s is cluster-scoped and the parent %s is namespaced; expected a namespaced resource",
					use.Path, r, namespaced)
			}
			if found && use.Role == v1alpha1.RoleParent {
				c.parent(controller, r, crds)
			}
		}
	}
	return nil
}

// oneParent reports whether a controller has parents of one resource.
func oneParent(c *manifest.Controller) bool {
	parent := func(u v1alpha1.Use) bool { return u.Role == v1alpha1.RoleParent }
	return len(slices.DeleteFunc(c.Uses(), func(u v1alpha1.Use) bool { return !parent(u) })) == 1
}

// undeclared reports a resource that is not known without a cluster.
func (c *checker) undeclared(controller *manifest.Controller, use v1alpha1.Use, known *catalog.Catalog) {
	meant, similar := known.Similar(use.Rule)
	version := meant.GVK.GroupVersion().String()
	switch {
	case similar && version == use.Rule.APIVersion:
		c.add(controller.Object, Error, use.Path+".resource", "%s.resource: got %q, expected the plural name %q",
			use.Path, use.Rule.Resource, meant.Plural)
	case similar:
		c.add(controller.Object, Warning, use.Path+".apiVersion",
			"%s.apiVersion: got %s, and %s is known in %s here; the controller starts if the cluster serves it",
			use.Path, use.Rule.APIVersion, meant.Plural, version)
	default:
		c.add(controller.Object, Warning, use.Path,
			"%s: %s is neither built into Kubernetes nor declared by a CRD in the files; "+
				"the controller starts if the cluster serves it", use.Path, use.Rule)
	}
}

// parent checks the CRD of a parent that the files declare.
func (c *checker) parent(controller *manifest.Controller, r object.Resource, crds []*manifest.CRD) {
	for _, crd := range crds {
		if crd.Definition.Spec.Group != r.GVK.Group || crd.Definition.Spec.Names.Plural != r.Plural {
			continue
		}
		for i, v := range crd.Definition.Spec.Versions {
			if v.Name == r.GVK.Version {
				c.parentVersion(controller, crd, i)
			}
		}
	}
}

func (c *checker) parentVersion(controller *manifest.Controller, crd *manifest.CRD, i int) {
	v := crd.Definition.Spec.Versions[i]
	at := "spec.versions[" + itoa(i) + "]"
	if controller.Kind().OwnsStatus && (v.Subresources == nil || v.Subresources.Status == nil) {
		c.add(crd.Object, Warning, at, "%s has no subresources.status, which parents of %s should have: "+
			"without it each write of the status is a new generation, and users overwrite it", at, controller)
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return
	}
	schema := v.Schema.OpenAPIV3Schema
	if controller.Kind().OwnsStatus && !keeps(schema, "status") {
		c.add(crd.Object, Warning, at+".schema.openAPIV3Schema", "the schema has no field status, "+
			"so the API server drops the status and the conditions that %s writes", controller)
	}
	composite, _ := controller.Declared.(*v1alpha1.CompositeController)
	if composite == nil || ptr.Deref(composite.Spec.GenerateSelector, false) {
		return
	}
	if spec := schema.Properties["spec"]; !keeps(schema, "spec") || !keeps(&spec, "selector") {
		c.add(controller.Object, Error, "spec",
			"parents need spec.selector, which their schema in %s does not have; expected generateSelector: true", crd.At(at))
	}
}

// keeps reports whether a schema keeps a field.
func keeps(schema *apiextensionsv1.JSONSchemaProps, name string) bool {
	_, has := schema.Properties[name]
	return has || ptr.Deref(schema.XPreserveUnknownFields, false) || schema.AdditionalProperties != nil
}
