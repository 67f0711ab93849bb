package v1alpha1

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func validateEndpoints(endpoints []EndpointConfig) field.ErrorList {
	var errs field.ErrorList
	for i, e := range endpoints {
		at := specPath.Child("endpointConfigs").Index(i)
		if e.Host == "" || strings.ContainsAny(e.Host, "/@") {
			errs = append(errs, field.Invalid(at.Child("host"), e.Host, "must be host or host:port"))
		}
		errs = append(errs, e.validateCredentials(at)...)
	}
	return errs
}

// validateCredentials checks everything but the host.
func (e *EndpointConfig) validateCredentials(at *field.Path) field.ErrorList {
	errs := e.CABundle.validate(at.Child("caBundle"))
	if e.ClientTLS != nil {
		errs = append(errs, e.ClientTLS.SecretRef.validate(at.Child("clientTLS", "secretRef"))...)
	}
	if e.Authorization != nil && e.BasicAuth != nil {
		errs = append(errs, field.Forbidden(at.Child("basicAuth"), "at most one of authorization and basicAuth may be set"))
	}
	errs = append(errs, e.Authorization.validate(at.Child("authorization"))...)
	if e.BasicAuth != nil {
		errs = append(errs, e.BasicAuth.SecretRef.validate(at.Child("basicAuth", "secretRef"))...)
	}
	return errs
}

func (b *CABundle) validate(at *field.Path) field.ErrorList {
	if b == nil {
		return nil
	}
	errs := oneOf(at, choice{"inline", b.Inline != nil}, choice{"secretRef", b.SecretRef != nil},
		choice{"configMapRef", b.ConfigMapRef != nil})
	if b.SecretRef != nil {
		errs = append(errs, validateName(b.SecretRef.Name, b.SecretRef.Namespace, at.Child("secretRef"))...)
	}
	if b.ConfigMapRef != nil {
		errs = append(errs, validateName(b.ConfigMapRef.Name, b.ConfigMapRef.Namespace, at.Child("configMapRef"))...)
	}
	return errs
}

func (a *Authorization) validate(at *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	errs := validateName(a.SecretRef.Name, a.SecretRef.Namespace, at.Child("secretRef"))
	switch {
	case strings.EqualFold(a.Type, "basic"):
		errs = append(errs, field.Invalid(at.Child("type"), a.Type, "type basic is not allowed, use basicAuth"))
	case strings.ContainsFunc(a.Type, func(r rune) bool { return r <= ' ' || r > '~' }):
		errs = append(errs,
			field.Invalid(at.Child("type"), a.Type, "must be one word of an Authorization header, such as Bearer"))
	}
	return errs
}

func (r SecretReference) validate(at *field.Path) field.ErrorList {
	return validateName(r.Name, r.Namespace, at)
}

// validateName asks for the two fields of every reference.
func validateName(name, namespace string, at *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(at.Child("name"), "the name of the object"))
	}
	if namespace == "" {
		errs = append(errs, field.Required(at.Child("namespace"), "the namespace of the object"))
	}
	return errs
}

// choice is one field of which exactly one must be set.
type choice struct {
	name string
	set  bool
}

func oneOf(at *field.Path, choices ...choice) field.ErrorList {
	var names, set []string
	for _, c := range choices {
		names = append(names, c.name)
		if c.set {
			set = append(set, c.name)
		}
	}
	if len(set) == 1 {
		return nil
	}
	last := len(names) - 1
	expected := fmt.Sprintf("exactly one of %s and %s must be set", strings.Join(names[:last], ", "), names[last])
	if len(set) == 0 {
		return field.ErrorList{field.Required(at, expected)}
	}
	return field.ErrorList{field.Forbidden(at, expected)}
}
