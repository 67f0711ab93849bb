package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate returns the errors of a defaulted spec; each names the field and the expected value. It
// is empty for every spec that the engine can run, and does not ask whether resources,
// Secrets or hooks exist.
func (m *MapController) Validate() field.ErrorList {
	s := &m.Spec
	parent := specPath.Child("parentResource")
	errs := s.ParentResource.validate(parent)
	errs = append(errs, validateSelector(s.ParentResource.LabelSelector, parent.Child("labelSelector"))...)
	errs = append(errs, s.validateInputs(specPath.Child("inputResources"))...)
	errs = append(errs, s.validateOutputs(specPath.Child("outputResources"))...)
	errs = append(errs, validateDeletionLimit(s.DeletionLimit)...)
	if s.Hooks == nil || s.Hooks.Map == nil {
		errs = append(errs, field.Required(specPath.Child("hooks", "map"), "without it no input can be mapped"))
	}
	errs = append(errs, validateHooks(m.hooks())...)
	return append(errs, validateEndpoints(s.EndpointConfigs)...)
}

func (s *MapControllerSpec) validateInputs(at *field.Path) field.ErrorList {
	if len(s.InputResources) == 0 {
		return field.ErrorList{field.Required(at, "the resources of the inputs, at least one")}
	}
	var errs field.ErrorList
	seen := seenResources{}
	for i, input := range s.InputResources {
		errs = append(errs, input.validate(at.Index(i))...)
		errs = append(errs, seen.add(input.ResourceRule, at.Index(i))...)
		errs = append(errs, s.notParent(input.ResourceRule, at.Index(i), "every parent would be its own input")...)
	}
	return errs
}

func (s *MapControllerSpec) validateOutputs(at *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := seenResources{}
	for i, output := range s.OutputResources {
		errs = append(errs, output.validate(at.Index(i))...)
		errs = append(errs, seen.add(output.ResourceRule, at.Index(i))...)
		errs = append(errs, s.notParent(output.ResourceRule, at.Index(i),
			"every output would be a parent with outputs of its own")...)
		errs = append(errs, output.UpdateStrategy.validate(at.Index(i).Child("updateStrategy"))...)
	}
	return errs
}

// notParent refuses the parent's own resource, in any version.
func (s *MapControllerSpec) notParent(r ResourceRule, at *field.Path, reason string) field.ErrorList {
	if r.Resource == "" || r.GVR().GroupResource() != s.ParentResource.GVR().GroupResource() {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, "must not be the parent's resource: "+reason)}
}

// validate accepts the methods that treat every output alone. An output belongs to one input, so
// that there is no set of outputs over which an update could roll.
func (s *OutputUpdateStrategy) validate(at *field.Path) field.ErrorList {
	if s == nil {
		return nil
	}
	switch s.Method {
	case "", UpdateOnDelete, UpdateRecreate, UpdateInPlace:
		return nil
	default:
		return field.ErrorList{field.NotSupported(at.Child("method"), s.Method,
			[]UpdateMethod{UpdateOnDelete, UpdateRecreate, UpdateInPlace})}
	}
}
