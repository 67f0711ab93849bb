package v1alpha1_test

import (
	"context"
	"testing"

	"github.com/hookloop/hookloop/manifests"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"
)

// schema is what the API server does with an object of one kind before it stores it.
type schema struct {
	structural *structural.Structural
	openAPI    validation.SchemaValidator
	cel        *cel.Validator
}

// admit defaults and prunes object in place, and returns the API server's errors.
func (s schema) admit(t *testing.T, object map[string]any) field.ErrorList {
	t.Helper()
	if dropped := pruning.PruneWithOptions(object, s.structural, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(dropped) > 0 {
		t.Errorf("fields that the schema does not know: %v", dropped)
	}
	defaulting.Default(object, s.structural)
	errs := validation.ValidateCustomResource(nil, object, s.openAPI)
	violations, _ := s.cel.Validate(context.Background(), nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, violations...)
}

// schemas reads the generated CRDs as the API server does, by kind. CEL rules that are too
// expensive fail here.
func schemas(t *testing.T) map[string]schema {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{apiextensions.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	documents, err := manifests.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]schema{}
	for _, document := range documents {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(document, crd); err != nil {
			t.Fatal(err)
		}
		out[crd.Spec.Names.Kind] = compile(t, scheme, crd)
	}
	return out
}

func compile(t *testing.T, scheme *runtime.Scheme, crd *apiextensionsv1.CustomResourceDefinition) schema {
	t.Helper()
	scheme.Default(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := scheme.Convert(crd, internal, nil); err != nil {
		t.Fatal(err)
	}
	internal.Status.StoredVersions = []string{"v1alpha1"}
	if errs := crdvalidation.ValidateCustomResourceDefinition(context.Background(), internal); len(errs) > 0 {
		t.Fatalf("the API server would refuse the CRD %s: %v", crd.Name, errs.ToAggregate())
	}
	openAPI := internal.Spec.Validation
	if openAPI == nil {
		openAPI = internal.Spec.Versions[0].Schema
	}
	shape, err := structural.NewStructural(openAPI.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(openAPI.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return schema{shape, validator, cel.NewValidator(shape, true, celconfig.PerCallLimit)}
}
