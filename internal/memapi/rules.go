package memapi

import (
	"context"
	"encoding/base64"
	"net/http"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// prepareBuiltin sets what the API server sets itself in a few built-in kinds. Old is nil for a new
// object.
func prepareBuiltin(r *resource, object, old *unstructured.Unstructured) {
	if r.custom != nil {
		return
	}
	switch r.groupResource() {
	case namespaces:
		prepareNamespace(object, old)
	case definitions:
		if old == nil {
			object.Object["status"] = map[string]any{}
		}
	}
	if r.gvk.Group == "" && r.plural == "pods" && old == nil {
		object.Object["status"] = map[string]any{"phase": "Pending"}
	}
}

// defaultBuiltin sets defaults of a few built-in kinds, when a request brings them.
func defaultBuiltin(r *resource, object *unstructured.Unstructured) {
	switch {
	case r.groupResource() == namespaces && object.GetName() != "":
		labels := object.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels[corev1.LabelMetadataName] = object.GetName()
		object.SetLabels(labels)
	case r.gvk.Group == "" && r.plural == "secrets":
		prepareSecret(object)
	}
}

func prepareNamespace(object, old *unstructured.Unstructured) {
	if old != nil {
		restore(object, old, "spec")
		return
	}
	object.Object["spec"] = map[string]any{"finalizers": []any{string(corev1.FinalizerKubernetes)}}
	object.Object["status"] = map[string]any{"phase": string(corev1.NamespaceActive)}
}

// prepareSecret moves stringData to data.
func prepareSecret(object *unstructured.Unstructured) {
	texts, _, err := unstructured.NestedStringMap(object.Object, "stringData")
	if err == nil && len(texts) > 0 {
		data, _, _ := unstructured.NestedMap(object.Object, "data")
		if data == nil {
			data = map[string]any{}
		}
		for k, v := range texts {
			data[k] = base64.StdEncoding.EncodeToString([]byte(v))
		}
		object.Object["data"] = data
	}
	delete(object.Object, "stringData")
	if kind, _, _ := unstructured.NestedString(object.Object, "type"); kind == "" {
		object.Object["type"] = string(corev1.SecretTypeOpaque)
	}
}

// validateBuiltin has the few rules of built-in kinds that controllers meet. Old is nil for a new
// object.
func validateBuiltin(ctx context.Context, r *resource, object, old *unstructured.Unstructured) field.ErrorList {
	if r.groupResource() == definitions { // their own finalizer has no slash
		return validateDefinition(ctx, object, old)
	}
	errs := validateFinalizers(object)
	switch {
	case r.gvk.Group == "" && (r.plural == "configmaps" || r.plural == "secrets"):
		return append(errs, validateImmutable(object, old)...)
	case r.gvk.Group == "apps":
		return append(errs, validateSelector(r, object, old)...)
	}
	return errs
}

// standardFinalizers are those that need no domain.
var standardFinalizers = words("kubernetes orphan foregroundDeletion")

// validateFinalizers checks that the finalizers of a built-in kind have a domain.
func validateFinalizers(object *unstructured.Unstructured) field.ErrorList {
	var errs field.ErrorList
	for i, f := range object.GetFinalizers() {
		if !strings.Contains(f, "/") && !standardFinalizers[f] {
			errs = append(errs, field.Invalid(field.NewPath("metadata", "finalizers").Index(i), f,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// validateImmutable protects the data of ConfigMaps and Secrets with immutable: true.
func validateImmutable(object, old *unstructured.Unstructured) field.ErrorList {
	if old == nil {
		return nil
	}
	if immutable, _, _ := unstructured.NestedBool(old.Object, "immutable"); !immutable {
		return nil
	}
	var errs field.ErrorList
	for _, name := range []string{"immutable", "data", "binaryData"} {
		if !reflect.DeepEqual(object.Object[name], old.Object[name]) {
			errs = append(errs, field.Forbidden(field.NewPath(name), "field is immutable when `immutable` is set"))
		}
	}
	return errs
}

// validateSelector checks that workloads have a selector that selects their template and does not
// change.
func validateSelector(r *resource, object, old *unstructured.Unstructured) field.ErrorList {
	if !words("deployments statefulsets daemonsets replicasets")[r.plural] {
		return nil
	}
	at := field.NewPath("spec", "selector")
	raw, _, err := unstructured.NestedMap(object.Object, "spec", "selector")
	if err != nil || raw == nil {
		return field.ErrorList{field.Required(at, "")}
	}
	parsed := &metav1.LabelSelector{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw, parsed); err != nil {
		return field.ErrorList{field.Invalid(at, raw, err.Error())}
	}
	if old != nil {
		before, _, _ := unstructured.NestedMap(old.Object, "spec", "selector")
		if !reflect.DeepEqual(raw, before) {
			return field.ErrorList{field.Invalid(at, parsed, "field is immutable")}
		}
	}
	selector, err := metav1.LabelSelectorAsSelector(parsed)
	if err != nil {
		return field.ErrorList{field.Invalid(at, parsed, "invalid label selector")}
	}
	labels, _, _ := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
	if selector.Empty() || !selector.Matches(labelSet(labels)) {
		return field.ErrorList{field.Invalid(field.NewPath("spec", "template", "metadata", "labels"), labels,
			"`selector` does not match template `labels`")}
	}
	return nil
}

type labelSet map[string]string

func (l labelSet) Has(name string) bool              { _, ok := l[name]; return ok }
func (l labelSet) Get(name string) string            { return l[name] }
func (l labelSet) Lookup(name string) (string, bool) { v, ok := l[name]; return v, ok }

// validateDefinition validates a CustomResourceDefinition.
func validateDefinition(ctx context.Context, object, old *unstructured.Unstructured) field.ErrorList {
	now, err := internalDefinition(object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if old == nil {
		now.Status.StoredVersions = nil
		for _, v := range now.Spec.Versions {
			if v.Storage {
				now.Status.StoredVersions = []string{v.Name}
			}
		}
		return crdvalidation.ValidateCustomResourceDefinition(ctx, now)
	}
	before, err := internalDefinition(old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return crdvalidation.ValidateCustomResourceDefinitionUpdate(ctx, now, before)
}

// definition returns the typed form of a CustomResourceDefinition.
func definition(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	typed := &apiextensionsv1.CustomResourceDefinition{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed)
	return typed, err
}

func internalDefinition(object *unstructured.Unstructured) (*apiextensions.CustomResourceDefinition, error) {
	typed, err := definition(object)
	if err != nil {
		return nil, err
	}
	out := &apiextensions.CustomResourceDefinition{}
	convert := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition
	return out, convert(typed, out, nil)
}

// finalizing reports whether an object waits for something else than finalizers in its metadata: a
// Namespace has its own.
func finalizing(object *unstructured.Unstructured) bool {
	if object.GetKind() != "Namespace" || object.GetAPIVersion() != "v1" {
		return false
	}
	finalizers, _, _ := unstructured.NestedStringSlice(object.Object, "spec", "finalizers")
	return len(finalizers) > 0
}

// sameContent reports whether two states of an object are equal.
func sameContent(a, b *unstructured.Unstructured) bool { return reflect.DeepEqual(a.Object, b.Object) }

// review answers a review: everything is allowed.
func review(object *unstructured.Unstructured) *answer {
	status := map[string]any{"allowed": true, "reason": "memapi allows everything"}
	switch {
	case strings.HasPrefix(object.GetKind(), "TokenReview"):
		status = map[string]any{"authenticated": false}
	case strings.HasPrefix(object.GetKind(), "SelfSubjectReview"):
		status = map[string]any{"userInfo": map[string]any{"username": "memapi"}}
	}
	object.Object["status"] = status
	return reply(http.StatusCreated, object.Object)
}
