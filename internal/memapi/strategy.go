package memapi

import (
	"context"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
)

// strategy is a resource, or its status, for the rules that the API server's library has for all
// resources.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	resource    *resource
	subresource string
}

var (
	_ rest.RESTCreateStrategy         = strategy{}
	_ rest.RESTUpdateStrategy         = strategy{}
	_ rest.RESTGracefulDeleteStrategy = strategy{}
)

func (q *request) strategy() strategy {
	return strategyOf(q.resource, q.Subresource)
}

func strategyOf(r *resource, subresource string) strategy {
	return strategy{ObjectTyper: typer{}, NameGenerator: names.SimpleNameGenerator, resource: r, subresource: subresource}
}

// typer takes the kind of an object from the object.
type typer struct{}

func (typer) ObjectKinds(o runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	return []schema.GroupVersionKind{o.GetObjectKind().GroupVersionKind()}, false, nil
}

func (typer) Recognizes(schema.GroupVersionKind) bool { return true }

func (s strategy) NamespaceScoped() bool          { return s.resource.namespaced }
func (s strategy) AllowCreateOnUpdate() bool      { return s.resource.upsert }
func (s strategy) AllowUnconditionalUpdate() bool { return !s.resource.conditional }
func (s strategy) Canonicalize(runtime.Object)    {}

// PrepareForCreate drops the status and begins to count generations.
func (s strategy) PrepareForCreate(_ context.Context, o runtime.Object) {
	object := o.(*unstructured.Unstructured) //nolint:forcetypeassert // the server has no others
	if s.resource.status && s.resource.groupResource() != definitions {
		delete(object.Object, "status")
	}
	object.SetGeneration(0)
	if s.resource.generation {
		object.SetGeneration(1)
	}
	prepareBuiltin(s.resource, object, nil)
}

// PrepareForUpdate keeps what the request must not change, and counts generations.
func (s strategy) PrepareForUpdate(_ context.Context, o, was runtime.Object) {
	object := o.(*unstructured.Unstructured)
	old := was.(*unstructured.Unstructured)
	switch {
	case s.subresource == "status":
		s.keepAllButStatus(object, old)
		return
	case s.subresource == "finalize":
		return
	case s.resource.status:
		restore(object, old, "status")
	}
	prepareBuiltin(s.resource, object, old)
	if s.resource.generation && s.changed(object, old) {
		object.SetGeneration(old.GetGeneration() + 1)
	}
}

// changed reports whether an update changes what the generation counts: for built-in resources the
// spec, or everything but metadata and status if there is none.
func (s strategy) changed(object, old *unstructured.Unstructured) bool {
	for _, a := range []*unstructured.Unstructured{object, old} {
		for k := range a.Object {
			if k == "metadata" || k == "status" && s.resource.custom == nil {
				continue
			}
			if !reflect.DeepEqual(object.Object[k], old.Object[k]) {
				return true
			}
		}
	}
	return false
}

// keepAllButStatus takes the status only. A built-in resource's annotations and finalizers can be
// changed through its status, too.
func (s strategy) keepAllButStatus(object, old *unstructured.Unstructured) {
	status, ok := object.Object["status"]
	managed := object.GetManagedFields()
	if s.resource.custom != nil {
		object.Object = old.DeepCopy().Object
		object.SetManagedFields(managed)
		delete(object.Object, "status")
	} else {
		object.SetLabels(old.GetLabels())
		for k := range object.Object {
			if k != "metadata" {
				delete(object.Object, k)
			}
		}
		for k, v := range old.DeepCopy().Object {
			if k != "metadata" && k != "status" {
				object.Object[k] = v
			}
		}
	}
	if ok {
		object.Object["status"] = status
	}
}

// restore sets a field to its old value.
func restore(object, old *unstructured.Unstructured, name string) {
	if value, ok := old.Object[name]; ok {
		object.Object[name] = runtime.DeepCopyJSONValue(value)
		return
	}
	delete(object.Object, name)
}

// Validate validates a new object.
func (s strategy) Validate(ctx context.Context, o runtime.Object) field.ErrorList {
	object := o.(*unstructured.Unstructured) //nolint:forcetypeassert // the server has no others
	errs := validation.ValidateObjectMetaAccessor(object, s.resource.namespaced, nameRule(s.resource),
		field.NewPath("metadata"))
	if s.resource.custom != nil {
		return append(errs, s.resource.custom.validate(ctx, object, nil)...)
	}
	return append(errs, validateBuiltin(ctx, s.resource, object, nil)...)
}

// ValidateUpdate validates an update.
func (s strategy) ValidateUpdate(ctx context.Context, o, was runtime.Object) field.ErrorList {
	object := o.(*unstructured.Unstructured)
	old := was.(*unstructured.Unstructured)
	errs := validation.ValidateObjectMetaAccessorUpdate(object, old, field.NewPath("metadata"))
	switch {
	case s.resource.custom == nil:
		return append(errs, validateBuiltin(ctx, s.resource, object, old)...)
	case s.subresource == "status":
		return append(errs, s.resource.custom.validateStatus(ctx, object, old)...)
	}
	return append(errs, s.resource.custom.validate(ctx, object, old)...)
}

// WarningsOnCreate returns warnings of finalizers.
func (s strategy) WarningsOnCreate(_ context.Context, o runtime.Object) []string {
	return s.warnings(o.(*unstructured.Unstructured), nil)
}

// WarningsOnUpdate returns warnings of new finalizers.
func (s strategy) WarningsOnUpdate(_ context.Context, o, was runtime.Object) []string {
	return s.warnings(o.(*unstructured.Unstructured), was.(*unstructured.Unstructured).GetFinalizers())
}

func (s strategy) warnings(object *unstructured.Unstructured, known []string) []string {
	if s.resource.custom == nil {
		return nil
	}
	var all []string
	for _, f := range object.GetFinalizers() {
		if !slices.Contains(known, f) {
			all = append(all, finalizerWarnings(f)...)
		}
	}
	return all
}

// CheckGracefulDelete reports whether an object gets time to end: a Pod does that runs on a node.
func (s strategy) CheckGracefulDelete(_ context.Context, o runtime.Object, options *metav1.DeleteOptions) bool {
	if s.resource.groupResource() != pods {
		return false
	}
	object := o.(*unstructured.Unstructured) //nolint:forcetypeassert // the server has no others
	period, ok, err := unstructured.NestedInt64(object.Object, "spec", "terminationGracePeriodSeconds")
	if !ok || err != nil {
		period = 30
	}
	if options.GracePeriodSeconds != nil {
		period = *options.GracePeriodSeconds
	}
	node, _, _ := unstructured.NestedString(object.Object, "spec", "nodeName")
	phase, _, _ := unstructured.NestedString(object.Object, "status", "phase")
	if node == "" || phase == "Succeeded" || phase == "Failed" {
		period = 0
	}
	options.GracePeriodSeconds = &period
	return true
}

// nameRule returns the rule for the names of a resource.
func nameRule(r *resource) validation.ValidateNameFunc {
	switch {
	case r.custom != nil:
		return validation.NameIsDNSSubdomain
	case r.groupResource() == namespaces:
		return validation.ValidateNamespaceName
	case r.gvk.Group == "rbac.authorization.k8s.io":
		return func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	case r.gvk.Group == "" && r.plural == "services":
		return validation.NameIsDNS1035Label
	}
	return validation.NameIsDNSSubdomain
}
