package v1alpha1

import (
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var specPath = field.NewPath("spec")

// Validate returns the errors of a defaulted spec; each names the field and the expected value. It
// is empty for every spec that the engine can run, and does not ask whether resources,
// Secrets or hooks exist.
func (c *CompositeController) Validate() field.ErrorList {
	s := &c.Spec
	parent := specPath.Child("parentResource")
	errs := s.ParentResource.validate(parent)
	errs = append(errs, validateSelector(s.ParentResource.LabelSelector, parent.Child("labelSelector"))...)
	children := specPath.Child("childResources")
	errs = append(errs, s.ParentResource.RevisionHistory.validate(parent.Child("revisionHistory"))...)
	seen := seenResources{}
	for i, child := range s.ChildResources {
		at := children.Index(i)
		errs = append(errs, child.validate(at)...)
		errs = append(errs, seen.add(child.ResourceRule, at)...)
		errs = append(errs, child.UpdateStrategy.validate(at.Child("updateStrategy"))...)
	}
	if s.Hooks == nil || s.Hooks.Sync == nil {
		errs = append(errs, field.Required(specPath.Child("hooks", "sync"), "without it no parent can be synced"))
	}
	errs = append(errs, validateDeletionLimit(s.DeletionLimit)...)
	errs = append(errs, validateHooks(c.hooks())...)
	return append(errs, validateEndpoints(s.EndpointConfigs)...)
}

// Validate returns the errors of a defaulted spec; each names the field and the expected value. It
// is empty for every spec that the engine can run, and does not ask whether resources,
// Secrets or hooks exist.
func (d *DecoratorController) Validate() field.ErrorList {
	s := &d.Spec
	var errs field.ErrorList
	seen := seenResources{}
	for i, r := range s.Resources {
		at := specPath.Child("resources").Index(i)
		errs = append(errs, r.validate(at)...)
		errs = append(errs, seen.add(r.ResourceRule, at)...)
		errs = append(errs, validateSelector(r.LabelSelector, at.Child("labelSelector"))...)
		errs = append(errs, r.AnnotationSelector.validate(at.Child("annotationSelector"))...)
	}
	seen = seenResources{}
	for i, a := range s.Attachments {
		at := specPath.Child("attachments").Index(i)
		errs = append(errs, a.validate(at)...)
		errs = append(errs, seen.add(a.ResourceRule, at)...)
		if a.UpdateStrategy != nil {
			errs = append(errs, a.UpdateStrategy.Method.validate(at.Child("updateStrategy", "method"))...)
		}
	}
	errs = append(errs, validateDeletionLimit(s.DeletionLimit)...)
	if s.Hooks == nil || s.Hooks.Sync == nil {
		errs = append(errs, field.Required(specPath.Child("hooks", "sync"), "without it no object can be synced"))
	}
	errs = append(errs, validateHooks(d.hooks())...)
	return append(errs, validateEndpoints(s.EndpointConfigs)...)
}

// deletionShare is a percentage.
var deletionShare = regexp.MustCompile(`^(100|[1-9]?[0-9])%$`)

// IsDeletionLimit reports whether a value is a number of 0 or more, or a percentage from 0% to
// 100%.
func IsDeletionLimit(limit intstr.IntOrString) bool {
	return limit.Type == intstr.Int && limit.IntVal >= 0 ||
		limit.Type == intstr.String && deletionShare.MatchString(limit.StrVal)
}

func validateDeletionLimit(limit *intstr.IntOrString) field.ErrorList {
	if limit == nil || IsDeletionLimit(*limit) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(specPath.Child("deletionLimit"), limit.String(),
			"must be a number of 0 or more, or a percentage from 0% to 100%"),
	}
}

func (r ResourceRule) validate(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if gv, err := schema.ParseGroupVersion(r.APIVersion); err != nil || gv.Version == "" {
		errs = append(errs,
			field.Invalid(at.Child("apiVersion"), r.APIVersion, "must be group/version, or a version alone for the core group"))
	}
	if r.Resource == "" {
		errs = append(errs, field.Required(at.Child("resource"), "the plural name of a resource, such as deployments"))
	}
	return errs
}

// seenResources finds a resource that is named twice; in two versions, too, because the objects are
// the same ones.
type seenResources map[schema.GroupResource]struct{}

func (s seenResources) add(r ResourceRule, at *field.Path) field.ErrorList {
	key := r.GVR().GroupResource()
	if _, ok := s[key]; ok {
		return field.ErrorList{field.Duplicate(at, key.String())}
	}
	s[key] = struct{}{}
	return nil
}

// validate refuses paths that lead nowhere, and those into fields that change with every write or
// identify the parent.
func (h *RevisionHistory) validate(at *field.Path) field.ErrorList {
	if h == nil {
		return nil
	}
	var errs field.ErrorList
	for i, path := range h.FieldPaths {
		steps := strings.Split(path, ".")
		described := len(steps) > 1 && (steps[1] == "labels" || steps[1] == "annotations")
		switch {
		case slices.Contains(steps, ""):
			errs = append(errs,
				field.Invalid(at.Child("fieldPaths").Index(i), path, "expected names joined by dots, such as spec.template"))
		case steps[0] == "metadata" && !described, steps[0] == "status", steps[0] == "apiVersion", steps[0] == "kind":
			errs = append(
				errs,
				field.Invalid(at.Child("fieldPaths").Index(i), path,
					"expected a field that users change, such as spec.template or metadata.labels"),
			)
		}
	}
	return errs
}

func (s *ChildUpdateStrategy) validate(at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := s.Method.validate(at.Child("method"))
	for i, check := range s.StatusChecks.Conditions {
		if check.Type == "" {
			errs = append(errs,
				field.Required(at.Child("statusChecks", "conditions").Index(i).Child("type"), "the type of a condition"))
		}
	}
	return errs
}

func (m UpdateMethod) validate(at *field.Path) field.ErrorList {
	switch m {
	case "", UpdateOnDelete, UpdateRecreate, UpdateInPlace, UpdateRollingRecreate, UpdateRollingInPlace:
		return nil
	default:
		return field.ErrorList{field.NotSupported(at, m, []UpdateMethod{
			UpdateOnDelete, UpdateRecreate, UpdateInPlace, UpdateRollingRecreate, UpdateRollingInPlace,
		})}
	}
}

func validateSelector(s *metav1.LabelSelector, at *field.Path) field.ErrorList {
	return metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, at)
}

// validate checks the keys and operators; values of annotations, unlike those of labels, are free
// text.
func (s *AnnotationSelector) validate(at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for key := range s.MatchAnnotations {
		errs = append(errs, metavalidation.ValidateLabelName(key, at.Child("matchAnnotations"))...)
	}
	free := metavalidation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: true}
	for i, requirement := range s.MatchExpressions {
		errs = append(
			errs,
			metavalidation.ValidateLabelSelectorRequirement(requirement, free, at.Child("matchExpressions").Index(i))...)
	}
	return errs
}
