package manifests

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
)

// Role is the part that a resource has in a controller.
type Role string

// The roles. Attachments of decorators and outputs of map controllers are children.
const (
	Parent Role = "parent"
	Child  Role = "child"
	Input  Role = "input"
)

// Use is a resource that a controller names.
type Use struct {
	Role Role
	Rule v1alpha1.ResourceRule
	// Method is the update method of a child.
	Method v1alpha1.UpdateMethod
	// Path is the field of the rule, for At.
	Path string
}

// Kind is the kind of controller that the object declares.
func (c *Controller) Kind() hook.Descriptor {
	kind, _ := hook.DescriptorOf(c.GVK().Kind)
	return kind
}

// Uses returns the resources that the controller names: parents, children, inputs.
func (c *Controller) Uses() []Use {
	var uses []Use
	add := func(role Role, rule v1alpha1.ResourceRule, path string, method v1alpha1.UpdateMethod) {
		uses = append(uses, Use{Role: role, Rule: rule, Method: method, Path: path})
	}
	switch d := c.Declared.(type) {
	case *v1alpha1.CompositeController:
		add(Parent, d.Spec.ParentResource.ResourceRule, "spec.parentResource", "")
		for i, r := range d.Spec.ChildResources {
			add(Child, r.ResourceRule, fmt.Sprintf("spec.childResources[%d]", i), r.UpdateStrategy.Method)
		}
	case *v1alpha1.DecoratorController:
		for i, r := range d.Spec.Resources {
			add(Parent, r.ResourceRule, fmt.Sprintf("spec.resources[%d]", i), "")
		}
		for i, r := range d.Spec.Attachments {
			add(Child, r.ResourceRule, fmt.Sprintf("spec.attachments[%d]", i), r.UpdateStrategy.Method)
		}
	case *v1alpha1.MapController:
		add(Parent, d.Spec.ParentResource.ResourceRule, "spec.parentResource", "")
		for i, r := range d.Spec.OutputResources {
			add(Child, r.ResourceRule, fmt.Sprintf("spec.outputResources[%d]", i), r.UpdateStrategy.Method)
		}
		for i, r := range d.Spec.InputResources {
			add(Input, r.ResourceRule, fmt.Sprintf("spec.inputResources[%d]", i), "")
		}
	}
	return uses
}

// Hooks returns the declared hooks by operation.
func (c *Controller) Hooks() map[hook.Op]*v1alpha1.Hook {
	all := map[hook.Op]*v1alpha1.Hook{}
	switch d := c.Declared.(type) {
	case *v1alpha1.CompositeController:
		all[hook.Sync], all[hook.Finalize] = d.Spec.Hooks.Sync, d.Spec.Hooks.Finalize
		all[hook.Customize] = d.Spec.Hooks.Customize
	case *v1alpha1.DecoratorController:
		all[hook.Sync], all[hook.Finalize] = d.Spec.Hooks.Sync, d.Spec.Hooks.Finalize
		all[hook.Customize] = d.Spec.Hooks.Customize
	case *v1alpha1.MapController:
		all[hook.Map], all[hook.Tombstone] = d.Spec.Hooks.Map, d.Spec.Hooks.Tombstone
		all[hook.Finalize], all[hook.Customize] = d.Spec.Hooks.Finalize, d.Spec.Hooks.Customize
	}
	for op, h := range all {
		if h == nil {
			delete(all, op)
		}
	}
	return all
}
