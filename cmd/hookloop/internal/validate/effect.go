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
func (c *checker) withoutEffect(controller *manifests.Controller) {
	switch d := controller.Declared.(type) {
	case *v1alpha1.CompositeController:
		c.compositeWithoutEffect(controller, &d.Spec)
	case *v1alpha1.DecoratorController:
		for i, a := range d.Spec.Attachments {
			if method := a.UpdateStrategy.Method; method.Rolling() {
				path := "spec.attachments[" + itoa(i) + "].updateStrategy.method"
				c.add(controller.Object, Warning, path, "%s: attachments have no rolling updates: %s acts as %s",
					path, method, strings.TrimPrefix(string(method), "Rolling"))
			}
		}
	}
}

func (c *checker) compositeWithoutEffect(controller *manifests.Controller, spec *v1alpha1.CompositeControllerSpec) {
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
