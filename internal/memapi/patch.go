package memapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxOperations is the largest number of operations of a JSON patch.
const maxOperations = 10_000

// patch answers a PATCH.
func (s *Server) patch(q *request) (*answer, error) {
	kind := types.PatchType(q.mediaType())
	if err := q.acceptPatch(kind); err != nil {
		return nil, err
	}
	o, err := options(q, metav1.Convert_url_Values_To_v1_PatchOptions, func(o *metav1.PatchOptions) field.ErrorList {
		return metavalidation.ValidatePatchOptions(o, kind)
	})
	if err != nil {
		return nil, err
	}
	if q.Subresource == "scale" {
		return s.patchScale(q, kind)
	}
	if kind == types.ApplyYAMLPatchType {
		apply := func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return s.applied(q, live, o.Force != nil && *o.Force)
		}
		return s.change(q, change{upsert: true, apply: apply})
	}
	return s.change(q, change{apply: func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		object, err := s.patched(q, kind, live)
		if err != nil {
			return nil, err
		}
		if err := q.match(object); err != nil {
			return nil, err
		}
		return s.managed(q, live, object)
	}})
}

// match returns an error unless an object has the name and the namespace of the URL.
func (q *request) match(object *unstructured.Unstructured) error {
	if err := q.matchNamespace(object); err != nil {
		return err
	}
	return q.matchName(object)
}

// acceptPatch returns an error for a kind of patch that the resource does not have.
func (q *request) acceptPatch(kind types.PatchType) error {
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if q.resource.custom == nil {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	accepted = append(accepted, string(types.ApplyYAMLPatchType))
	if slices.Contains(accepted, string(kind)) {
		return nil
	}
	return errMediaType(accepted...)
}

// patched returns an object after a JSON, merge or strategic merge patch.
func (s *Server) patched(
	q *request, kind types.PatchType, live *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	before, err := s.ordered(q.resource, live)
	if err != nil {
		return nil, err
	}
	var after []byte
	var problems []error
	switch kind {
	case types.JSONPatchType:
		after, problems, err = patchJSON(before, q.body)
	case types.MergePatchType:
		after, problems, err = patchMerge(before, q.body)
	default:
		after, problems, err = s.patchStrategic(q.resource.gvk, live, q.body)
	}
	if err != nil {
		return nil, err
	}
	invalid := func(err error) error {
		return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(after), err.Error()),
		})
	}
	object, unknown, err := s.read(q.resource, after)
	if err != nil {
		prefix := q.resource.unhandled(q.resource.gvk, "")
		return nil, invalid(errors.New(strings.TrimPrefix(err.Error(), prefix)))
	}
	return object, q.complain(append(problems, unknown...), invalid)
}

func patchJSON(before, body []byte) ([]byte, []error, error) {
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	problems, err := kjson.UnmarshalStrict(body, &operations)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	for i, p := range problems {
		problems[i] = fmt.Errorf("json patch %w", p)
	}
	if len(operations) > maxOperations {
		return nil, nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
			"The allowed maximum operations in a JSON patch is %d, got %d", maxOperations, len(operations)))
	}
	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	after, err := patch.Apply(before)
	if err != nil {
		return nil, nil, apierrors.NewGenericServerResponse(
			http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return after, problems, nil
}

func patchMerge(before, body []byte) ([]byte, []error, error) {
	content := map[string]any{}
	problems, err := kjson.UnmarshalStrict(body, &content)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	return after, problems, nil
}

func (s *Server) patchStrategic(
	gvk schema.GroupVersionKind, live *unstructured.Unstructured, body []byte,
) ([]byte, []error, error) {
	patch := map[string]any{}
	problems, err := kjson.UnmarshalStrict(body, &patch)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	typed, err := s.scheme.New(gvk)
	if err != nil {
		return nil, nil, err
	}
	after, err := strategicpatch.StrategicMergeMapPatch(live.DeepCopy().Object, patch, typed)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	data, err := json.Marshal(after)
	return data, problems, err
}

// applied returns an object after a server-side apply.
func (s *Server) applied(q *request, live *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	configuration := map[string]any{}
	if err := yaml.Unmarshal(q.body, &configuration); err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	m, err := s.fieldManager(q.resource, q.Subresource)
	if err != nil {
		return nil, err
	}
	applied, err := m.Apply(live.DeepCopy(), &unstructured.Unstructured{Object: configuration}, q.manager(), force)
	if err != nil {
		return nil, err
	}
	object, ok := applied.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the field manager returned a %T", applied)
	}
	if err := q.strictYAML(); err != nil {
		return nil, err
	}
	object, err = s.typedAgain(q.resource, object)
	if err != nil {
		return nil, err
	}
	return object, q.match(object)
}

// strictYAML complains about duplicate fields of an applied configuration.
func (q *request) strictYAML() error {
	err := yaml.UnmarshalStrict(q.body, &map[string]any{})
	if err == nil {
		return nil
	}
	switch q.fieldValidation() {
	case metav1.FieldValidationStrict:
		return apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
	case metav1.FieldValidationWarn:
		q.AddWarning("", err.Error())
	}
	return nil
}

// ordered returns an object as JSON; a built-in one has the order of its Go type, which messages
// show.
func (s *Server) ordered(r *resource, live *unstructured.Unstructured) ([]byte, error) {
	if r.custom != nil {
		return json.Marshal(live.Object)
	}
	typed, err := s.scheme.New(r.gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, typed); err != nil {
		return nil, err
	}
	return json.Marshal(typed)
}

// typedAgain gives a built-in object the form that its Go type has, and a custom one its defaults.
func (s *Server) typedAgain(r *resource, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.custom != nil {
		r.custom.setDefaults(object)
		return object, nil
	}
	typed, err := s.scheme.New(r.gvk)
	if err != nil {
		return nil, err
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, typed); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	object, err = s.generic(r, typed)
	if err == nil {
		defaultBuiltin(r, object)
	}
	return object, err
}
