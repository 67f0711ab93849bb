package memapi

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	crvalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// customKind has the schema of a custom resource in one version.
type customKind struct {
	// structural is the schema; nil accepts everything.
	structural *schema.Structural
	preserve   bool
	values     crvalidation.SchemaValidator
	status     crvalidation.SchemaValidator
	rules      *cel.Validator
	types      managedfields.TypeConverter
	scale      *scale
	// terminating reports that the definition is being deleted.
	terminating bool
}

// newCustomKind reads the schema of a version.
func newCustomKind(
	crd *apiextensionsv1.CustomResourceDefinition, v apiextensionsv1.CustomResourceDefinitionVersion,
) (*customKind, error) {
	k := &customKind{
		preserve: crd.Spec.PreserveUnknownFields, types: managedfields.NewDeducedTypeConverter(),
		terminating: crd.DeletionTimestamp != nil,
	}
	if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
		return k, nil
	}
	internal := &apiextensions.CustomResourceValidation{}
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		v.Schema, internal, nil); err != nil {
		return nil, err
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	k.structural = structural.DeepCopy()
	if err := defaulting.PruneDefaults(k.structural); err != nil {
		return nil, err
	}
	k.values, _, err = crvalidation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	if status, ok := internal.OpenAPIV3Schema.Properties["status"]; ok {
		k.status, _, err = crvalidation.NewSchemaValidator(&status)
		if err != nil {
			return nil, err
		}
	}
	k.rules = cel.NewValidator(k.structural, true, celconfig.PerCallLimit)
	gvk := metav1.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
	k.types, err = typesOf(gvk, k.structural)
	return k, err
}

// coerce brings the metadata into its form, and drops fields that the schema does not have. It
// returns their paths.
func (k *customKind) coerce(object *unstructured.Unstructured) (unknown []string, err error) {
	gvk := object.GroupVersionKind()
	metadata, found, paths, err := objectmeta.GetObjectMetaWithOptions(object.Object,
		objectmeta.ObjectMetaOptions{ReturnUnknownFieldPaths: true})
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, paths...)
	if !k.preserve && k.structural != nil {
		unknown = append(unknown, pruning.PruneWithOptions(object.Object, k.structural, true,
			schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(object.Object, k.structural)
	}
	invalid, paths := objectmeta.CoerceWithOptions(nil, object.Object, k.structural, false,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if invalid != nil {
		return nil, invalid
	}
	object.SetGroupVersionKind(gvk)
	if found {
		if err := objectmeta.SetObjectMeta(object.Object, metadata); err != nil {
			return nil, err
		}
	}
	dropNull(object)
	return append(unknown, paths...), nil
}

// setDefaults sets the defaults of the schema.
func (k *customKind) setDefaults(object *unstructured.Unstructured) {
	if k.structural != nil {
		defaulting.Default(object.Object, k.structural)
	}
}

// validate validates an object by schema and rules. Old is nil for a new object.
func (k *customKind) validate(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	if k.structural == nil {
		return nil
	}
	var errs field.ErrorList
	var was any
	var celOptions []cel.Option
	if old == nil {
		errs = crvalidation.ValidateCustomResource(nil, object.Object, k.values)
	} else {
		correlated := common.NewCorrelatedObject(object.Object, old.Object, &model.Structural{Structural: k.structural})
		errs = crvalidation.ValidateCustomResourceUpdate(nil, object.Object, old.Object, k.values,
			crvalidation.WithRatcheting(correlated))
		was = old.Object
		celOptions = []cel.Option{cel.WithRatcheting(correlated)}
	}
	errs = append(errs, k.scale.validate(object)...)
	errs = append(errs, objectmeta.Validate(nil, object.Object, k.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, k.structural, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, object.Object)...)
	}
	return append(errs, k.evaluate(ctx, object, was, errs, celOptions)...)
}

// validateStatus validates an update of the status.
func (k *customKind) validateStatus(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	if k.structural == nil {
		return nil
	}
	correlated := common.NewCorrelatedObject(object.Object, old.Object, &model.Structural{Structural: k.structural})
	var errs field.ErrorList
	if status, ok := object.Object["status"]; ok && k.status != nil {
		errs = crvalidation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], k.status,
			crvalidation.WithRatcheting(correlated.Key("status")))
	}
	return append(errs, k.evaluate(ctx, object, old.Object, errs, []cel.Option{cel.WithRatcheting(correlated)})...)
}

// evaluate evaluates the rules unless the errors so far would make them fail, too.
func (k *customKind) evaluate(
	ctx context.Context, object *unstructured.Unstructured, was any, errs field.ErrorList, o []cel.Option,
) field.ErrorList {
	if k.rules == nil {
		return nil
	}
	for _, e := range errs {
		switch e.Type { //nolint:exhaustive // only these make an object unfit for rules
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
			field.ErrorTypeTypeInvalid:
			return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
				"invalid; correct the existing errors to complete validation")}
		}
	}
	found, _ := k.rules.Validate(ctx, nil, k.structural, object.Object, was, celconfig.RuntimeCELCostBudget, o...)
	return found
}

// finalizerWarnings returns the warnings of a new finalizer of a custom resource.
func finalizerWarnings(name string) []string {
	var all []string
	for _, problem := range validation.IsQualifiedName(name) {
		all = append(all, fmt.Sprintf("metadata.finalizers: %q: %s", name, problem))
	}
	switch {
	case strings.Contains(name, "/"), name == metav1.FinalizerOrphanDependents,
		name == metav1.FinalizerDeleteDependents, name == string(corev1.FinalizerKubernetes):
		return all
	case strings.Contains(name, "."):
		return append(all, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name including a "+
			"path (/) to avoid accidental conflicts with other finalizer writers", name))
	}
	return append(all, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid "+
		"accidental conflicts with other finalizer writers", name))
}

// condition returns a condition of a CustomResourceDefinition.
func condition(
	kind apiextensionsv1.CustomResourceDefinitionConditionType, reason, message string,
) apiextensionsv1.CustomResourceDefinitionCondition {
	return apiextensionsv1.CustomResourceDefinitionCondition{
		Type: kind, Status: apiextensionsv1.ConditionTrue, Reason: reason, Message: message, LastTransitionTime: metav1.Now(),
	}
}

// listKindOf returns the kind of lists that a definition names, or its default.
func listKindOf(names apiextensionsv1.CustomResourceDefinitionNames) string {
	if names.ListKind != "" {
		return names.ListKind
	}
	return names.Kind + "List"
}
