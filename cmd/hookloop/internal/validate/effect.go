package validate

import (
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/manifest"
	"github.com/hookloop/hookloop/engine/api/v1alpha1"
)

func itoa(i int) string { return strconv.Itoa(i) }

// withoutEffect reports fields that do nothing.
func (c *checker) withoutEffect(controller *manifest.Controller) {
	if composite, ok := controller.Declared.(*v1alpha1.CompositeController); ok {
		c.compositeWithoutEffect(controller, &composite.Spec)
	}
	kind := controller.Kind()
	for _, use := range controller.Uses() {
		if kind.Rolls || !use.Method.Rolling() {
			continue
		}
		path := use.Path + ".updateStrategy.method"
		c.add(controller.Object, Warning, path, "%s: %s have no rolling updates: %s acts as %s",
			path, kind.ChildrenField, use.Method, strings.TrimPrefix(string(use.Method), "Rolling"))
	}
}

func (c *checker) compositeWithoutEffect(controller *manifest.Controller, spec *v1alpha1.CompositeControllerSpec) {
	rolls := func(r v1alpha1.ChildResourceRule) bool { return r.UpdateStrategy.Method.Rolling() }
	for i, child := range spec.ChildResources {
		if len(child.UpdateStrategy.StatusChecks.Conditions) > 0 && !rolls(child) {
			path := "spec.childResources[" + itoa(i) + "].updateStrategy.statusChecks"
			c.add(controller.Object, Warning, path, "%s has no effect with the method %s, expected a rolling method",
				path, child.UpdateStrategy.Method)
		}
	}
	_, history := controller.Field("spec", "parentResource", "revisionHistory")
	if history && !slices.ContainsFunc(spec.ChildResources, rolls) {
		c.add(controller.Object, Warning, "spec.parentResource.revisionHistory",
			"spec.parentResource.revisionHistory has no effect, because no child has a rolling method")
	}
	for name, hook := range map[string]*v1alpha1.Hook{
		"preUpdateChild": spec.Hooks.PreUpdateChild, "postUpdateChild": spec.Hooks.PostUpdateChild,
	} {
		if hook != nil {
			c.add(controller.Object, Warning, "spec.hooks."+name, "spec.hooks.%s is never called", name)
		}
	}
}
