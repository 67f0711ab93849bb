package v1alpha1

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Controller is a declaring object of any kind. Use [NewController] to make one by the name of its
// kind, and decode a manifest into it. Call Default before the other methods.
//
// +kubebuilder:object:generate=false
type Controller interface {
	runtime.Object
	metav1.Object
	// Default fills in what the spec leaves open.
	Default()
	// Validate returns the errors of a defaulted spec.
	Validate() field.ErrorList
	// Uses returns the resources that the spec names: parents, children, inputs.
	Uses() []Use
	// DeclaredHooks returns the declared hooks by the name of their field, such as sync.
	DeclaredHooks() map[string]*Hook
	// Common returns the part of the spec that all kinds have.
	Common() Common
	// SelectOnly drops what the spec requires of its parents' labels and annotations, and all
	// parent resources but one. It is for tools that try a controller with a parent of their own.
	SelectOnly(parent ResourceRule)
}

// Common is the part of the spec that all kinds of controllers have.
//
// +kubebuilder:object:generate=false
type Common struct {
	EndpointConfigs []EndpointConfig
	// Resync is the time between two resyncs of a parent; 0 means none.
	Resync time.Duration
	// DeletionLimit bounds the deletions of one answer; nil means the engine's own limit.
	DeletionLimit *intstr.IntOrString
}

// Role is the part that a resource plays in a controller.
type Role string

// The roles. Attachments of decorators and outputs of map controllers are children.
const (
	RoleParent Role = "parent"
	RoleChild  Role = "child"
	RoleInput  Role = "input"
)

// Use is a resource that a controller names.
//
// +kubebuilder:object:generate=false
type Use struct {
	Role Role
	Rule ResourceRule
	// Path is the field of the rule, such as spec.childResources[0].
	Path string
	// Method is the update method of children.
	Method UpdateMethod
	// Labels and Annotations select the parents. Nil selects all.
	Labels      *metav1.LabelSelector
	Annotations *AnnotationSelector
}

// NewController returns an empty object of a kind, such as CompositeController. It returns false if
// objects of the kind do not declare controllers.
func NewController(kind string) (Controller, bool) {
	i := slices.IndexFunc(kinds, func(k declaring) bool { return k.kind == kind })
	if i < 0 {
		return nil, false
	}
	return kinds[i].empty(), true
}

// Uses implements [Controller].
func (c *CompositeController) Uses() []Use {
	parent := c.Spec.ParentResource
	uses := []Use{{
		Role: RoleParent, Rule: parent.ResourceRule, Path: "spec.parentResource", Labels: parent.LabelSelector,
	}}
	for i, r := range c.Spec.ChildResources {
		uses = append(uses, child(r.ResourceRule, "spec.childResources", i, r.UpdateStrategy.Method))
	}
	return uses
}

// Uses implements [Controller].
func (d *DecoratorController) Uses() []Use {
	var uses []Use
	for i, r := range d.Spec.Resources {
		uses = append(uses, Use{
			Role: RoleParent, Rule: r.ResourceRule, Path: fmt.Sprintf("spec.resources[%d]", i),
			Labels: r.LabelSelector, Annotations: r.AnnotationSelector,
		})
	}
	for i, r := range d.Spec.Attachments {
		uses = append(uses, child(r.ResourceRule, "spec.attachments", i, r.UpdateStrategy.Method))
	}
	return uses
}

// Uses implements [Controller].
func (m *MapController) Uses() []Use {
	parent := m.Spec.ParentResource
	uses := []Use{{
		Role: RoleParent, Rule: parent.ResourceRule, Path: "spec.parentResource", Labels: parent.LabelSelector,
	}}
	for i, r := range m.Spec.OutputResources {
		uses = append(uses, child(r.ResourceRule, "spec.outputResources", i, r.UpdateStrategy.Method))
	}
	for i, r := range m.Spec.InputResources {
		uses = append(uses, Use{
			Role: RoleInput, Rule: r.ResourceRule, Path: fmt.Sprintf("spec.inputResources[%d]", i),
		})
	}
	return uses
}

func child(rule ResourceRule, list string, i int, method UpdateMethod) Use {
	return Use{Role: RoleChild, Rule: rule, Path: fmt.Sprintf("%s[%d]", list, i), Method: method}
}

// DeclaredHooks implements [Controller].
func (c *CompositeController) DeclaredHooks() map[string]*Hook { return byName(c.hooks()) }

// DeclaredHooks implements [Controller].
func (d *DecoratorController) DeclaredHooks() map[string]*Hook { return byName(d.hooks()) }

// DeclaredHooks implements [Controller].
func (m *MapController) DeclaredHooks() map[string]*Hook { return byName(m.hooks()) }

func byName(hooks []placedHook) map[string]*Hook {
	all := make(map[string]*Hook, len(hooks))
	for _, h := range hooks {
		all[h.name] = h.hook
	}
	return all
}

// Common implements [Controller].
func (c *CompositeController) Common() Common {
	return Common{c.Spec.EndpointConfigs, c.Spec.ResyncPeriod(), c.Spec.DeletionLimit}
}

// Common implements [Controller].
func (d *DecoratorController) Common() Common {
	return Common{d.Spec.EndpointConfigs, d.Spec.ResyncPeriod(), d.Spec.DeletionLimit}
}

// Common implements [Controller].
func (m *MapController) Common() Common {
	return Common{m.Spec.EndpointConfigs, m.Spec.ResyncPeriod(), m.Spec.DeletionLimit}
}

// SelectOnly implements [Controller].
func (c *CompositeController) SelectOnly(ResourceRule) { c.Spec.ParentResource.LabelSelector = nil }

// SelectOnly implements [Controller].
func (d *DecoratorController) SelectOnly(parent ResourceRule) {
	i := slices.IndexFunc(d.Spec.Resources, func(r DecoratedResourceRule) bool { return r.GVR() == parent.GVR() })
	only := d.Spec.Resources[max(i, 0)]
	only.LabelSelector = nil
	only.AnnotationSelector = nil
	d.Spec.Resources = []DecoratedResourceRule{only}
}

// SelectOnly implements [Controller].
func (m *MapController) SelectOnly(ResourceRule) { m.Spec.ParentResource.LabelSelector = nil }
