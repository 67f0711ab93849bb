package memapi

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// fieldAt splits the path of a field, which begins with a dot.
func fieldAt(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }

// scaleOf returns the Scale of an object.
func (r *resource) scaleOf(object *unstructured.Unstructured) *autoscalingv1.Scale {
	out := &autoscalingv1.Scale{
		TypeMeta: metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
		ObjectMeta: metav1.ObjectMeta{
			Name: object.GetName(), Namespace: object.GetNamespace(), UID: object.GetUID(),
			ResourceVersion: object.GetResourceVersion(), CreationTimestamp: object.GetCreationTimestamp(),
		},
	}
	out.Spec.Replicas = int32At(object, r.scale.specReplicas)
	out.Status.Replicas = int32At(object, r.scale.statusReplicas)
	if r.scale.selector == "" {
		return out
	}
	selector, _, _ := unstructured.NestedFieldNoCopy(object.Object, fieldAt(r.scale.selector)...)
	switch v := selector.(type) {
	case string:
		out.Status.Selector = v
	case map[string]any:
		parsed := &metav1.LabelSelector{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(v, parsed); err == nil {
			out.Status.Selector = metav1.FormatLabelSelector(parsed)
		}
	}
	return out
}

func int32At(object *unstructured.Unstructured, path string) int32 {
	n, _, err := unstructured.NestedInt64(object.Object, fieldAt(path)...)
	if err != nil {
		return 0
	}
	return int32(n) //nolint:gosec // the schemas limit it
}

// updateScale answers a PUT of a Scale.
func (s *Server) updateScale(q *request) (*answer, error) {
	wanted := &autoscalingv1.Scale{}
	body, err := s.bodyJSON(q)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, wanted); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return s.rescale(q, func(*unstructured.Unstructured) (*autoscalingv1.Scale, error) { return wanted, nil })
}

// patchScale answers a JSON or merge patch of a Scale.
func (s *Server) patchScale(q *request, kind types.PatchType) (*answer, error) {
	return s.rescale(q, func(live *unstructured.Unstructured) (*autoscalingv1.Scale, error) {
		before, err := json.Marshal(q.resource.scaleOf(live))
		if err != nil {
			return nil, err
		}
		apply := patchMerge
		switch kind {
		case types.JSONPatchType:
			apply = patchJSON
		case types.ApplyYAMLPatchType:
			return nil, errMediaType(string(types.JSONPatchType), string(types.MergePatchType))
		}
		after, _, err := apply(before, q.body)
		if err != nil {
			return nil, err
		}
		out := &autoscalingv1.Scale{}
		if err := json.Unmarshal(after, out); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return out, nil
	})
}

// rescale changes the replicas of an object.
func (s *Server) rescale(
	q *request, wanted func(*unstructured.Unstructured) (*autoscalingv1.Scale, error),
) (*answer, error) {
	return s.change(q, change{apply: func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		w, err := wanted(live)
		if err != nil {
			return nil, err
		}
		if w.Spec.Replicas < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("spec.replicas: %d: should be a non-negative integer",
				w.Spec.Replicas))
		}
		object := live.DeepCopy()
		if w.ResourceVersion != "" {
			object.SetResourceVersion(w.ResourceVersion)
		}
		at := fieldAt(q.resource.scale.specReplicas)
		if err := unstructured.SetNestedField(object.Object, int64(w.Spec.Replicas), at...); err != nil {
			return nil, err
		}
		return s.managed(q, live, object)
	}})
}

// validate checks the replicas of an object.
func (s *scale) validate(object *unstructured.Unstructured) field.ErrorList {
	if s == nil {
		return nil
	}
	var errs field.ErrorList
	for _, path := range []string{s.specReplicas, s.statusReplicas} {
		n, _, err := unstructured.NestedInt64(object.Object, fieldAt(path)...)
		switch {
		case err != nil:
			errs = append(errs, field.Invalid(field.NewPath(path), n, err.Error()))
		case n < 0:
			errs = append(errs, field.Invalid(field.NewPath(path), n, "should be a non-negative integer"))
		case n > math.MaxInt32:
			errs = append(errs, field.Invalid(field.NewPath(path), n,
				fmt.Sprintf("should be less than or equal to %v", math.MaxInt32)))
		}
	}
	return errs
}
