package memapi

import (
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// selection selects objects of a list or a watch.
type selection struct {
	resource  *resource
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newSelection(q *request, o *metav1.ListOptions) (selection, error) {
	s := selection{resource: q.resource, namespace: q.Namespace}
	var err error
	s.labels, err = labels.Parse(o.LabelSelector)
	if err != nil {
		return s, apierrors.NewBadRequest(fmt.Sprintf("unable to parse requirement: %v", strings.TrimPrefix(
			err.Error(), "unable to parse requirement: ")))
	}
	s.fields, err = fields.ParseSelector(o.FieldSelector)
	if err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	if q.Name != "" { // a watch of one object, in the old form
		s.fields = fields.AndSelectors(s.fields, fields.OneTermEqualSelector("metadata.name", q.Name))
	}
	s.fields, err = s.fields.Transform(func(label, value string) (string, string, error) {
		if slices.Contains(q.resource.fields, label) {
			return label, value, nil
		}
		known := label == "metadata.name" || label == "metadata.namespace" && q.resource.namespaced
		if !known && (q.resource.custom != nil || len(q.resource.fields) > 0) {
			return "", "", fmt.Errorf("field label not supported: %s", label)
		}
		return runtime.DefaultMetaV1FieldSelectorConversion(label, value)
	})
	if err != nil {
		return s, apierrors.NewBadRequest(err.Error())
	}
	return s, nil
}

// matches reports whether an object is selected.
func (s selection) matches(o *stored) bool {
	if o == nil || s.namespace != "" && s.resource.namespaced && o.object.GetNamespace() != s.namespace {
		return false
	}
	return s.labels.Matches(labels.Set(o.object.GetLabels())) && (s.fields.Empty() || s.fields.Matches(values{o.object}))
}

// values are the fields of an object by their paths.
type values struct{ object *unstructured.Unstructured }

// Has implements fields.Fields.
func (v values) Has(path string) bool { return v.Get(path) != "" }

// Get implements fields.Fields.
func (v values) Get(path string) string {
	value, ok, err := unstructured.NestedFieldNoCopy(v.object.Object, strings.Split(path, ".")...)
	switch {
	case err != nil:
		return ""
	case !ok && path == "source": // a core Event's component
		value, ok, _ = unstructured.NestedFieldNoCopy(v.object.Object, "source", "component")
	}
	if !ok || value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
