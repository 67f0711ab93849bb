package memapi

import (
	stdjson "encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apiserver/pkg/warning"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// bodyJSON returns the body as JSON.
func (s *Server) bodyJSON(q *request) ([]byte, error) {
	switch kind := q.mediaType(); kind {
	case "application/json":
		return q.body, nil
	case "application/yaml":
		body, err := yaml.YAMLToJSON(q.body)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return body, nil
	case runtime.ContentTypeProtobuf:
		object, _, err := protobuf.NewSerializer(s.scheme, s.scheme).Decode(q.body, nil, nil)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		return stdjson.Marshal(object)
	default:
		return nil, errMediaType("application/json", "application/yaml", runtime.ContentTypeProtobuf)
	}
}

// errMediaType is the error of a body in an unknown format.
func errMediaType(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: 415, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(accepted, ", "),
	}}
}

// decode reads an object from a request's body, in the version of the resource.
func (s *Server) decode(q *request) (*unstructured.Unstructured, error) {
	body, err := s.bodyJSON(q)
	if err != nil {
		return nil, err
	}
	object, problems, err := s.read(q.resource, body)
	if err != nil {
		return nil, err
	}
	return object, q.complain(problems, func(err error) error {
		return apierrors.NewBadRequest(q.resource.unhandled(q.resource.gvk, err.Error()))
	})
}

// complain treats unknown and duplicate fields as the request asks for: it drops them, warns of
// them, or returns an error.
func (q *request) complain(problems []error, refuse func(error) error) error {
	if len(problems) == 0 {
		return nil
	}
	switch q.fieldValidation() {
	case metav1.FieldValidationIgnore:
		return nil
	case metav1.FieldValidationStrict:
		return refuse(runtime.NewStrictDecodingError(problems))
	}
	for _, p := range problems {
		warning.AddWarning(q, "", p.Error())
	}
	return nil
}

// read reads the JSON of an object. The problems are unknown and duplicate fields, which it drops.
func (s *Server) read(r *resource, body []byte) (*unstructured.Unstructured, []error, error) {
	if r.custom != nil {
		return s.readCustom(r, body)
	}
	return s.readBuiltin(r, body)
}

// readBuiltin reads an object by its Go type.
func (s *Server) readBuiltin(r *resource, body []byte) (*unstructured.Unstructured, []error, error) {
	strictly := json.SerializerOptions{Strict: true}
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, s.scheme, s.scheme, strictly)
	typed, gvk, err := serializer.Decode(body, &r.gvk, nil)
	var problems []error
	if strict, ok := runtime.AsStrictDecodingError(err); ok && typed != nil {
		problems = strict.Errors()
		err = nil
	}
	if err != nil {
		return nil, nil, unreadable(r, gvk, err)
	}
	if err := sameKind(r, *gvk); err != nil {
		return nil, nil, err
	}
	s.scheme.Default(typed)
	object, err := s.generic(r, typed)
	if err == nil {
		defaultBuiltin(r, object)
	}
	return object, problems, err
}

// generic returns a typed object as a map.
func (s *Server) generic(r *resource, typed runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(typed)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetGroupVersionKind(r.gvk)
	dropNull(object)
	return object, nil
}

// dropNull removes the timestamps that a typed object without them has as null.
func dropNull(object *unstructured.Unstructured) {
	metadata, ok := object.Object["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		object.Object["metadata"] = metadata
	}
	if at, ok := metadata["creationTimestamp"]; ok && at == nil {
		delete(metadata, "creationTimestamp")
	}
}

// readCustom reads an object by the schema of its CustomResourceDefinition.
func (s *Server) readCustom(r *resource, body []byte) (*unstructured.Unstructured, []error, error) {
	content := map[string]any{}
	problems, err := kjson.UnmarshalStrict(body, &content)
	if err != nil {
		return nil, nil, unreadable(r, &r.gvk, fmt.Errorf("json: %w", err))
	}
	object := &unstructured.Unstructured{Object: content}
	gvk := object.GroupVersionKind()
	if gvk.Kind == "" {
		missing := runtime.NewMissingKindErr(string(body))
		return nil, nil, apierrors.NewBadRequest(fmt.Sprintf(
			"the object provided is unrecognized (must be of type %s): %v (%s)", r.gvk.Kind, missing, summary(body)))
	}
	if err := sameKind(r, gvk); err != nil {
		return nil, nil, err
	}
	unknown, err := r.custom.coerce(object)
	if err != nil {
		return nil, nil, unreadable(r, &gvk, err)
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Errorf("unknown field %q", path))
	}
	r.custom.setDefaults(object)
	return object, problems, nil
}

// summary returns the beginning of a body, for errors.
func summary(body []byte) string {
	const longest = 30
	if len(body) > longest {
		return string(body[:longest]) + " ..."
	}
	return string(body)
}

// unreadable is the error of a body that is not an object of the resource.
func unreadable(r *resource, gvk *schema.GroupVersionKind, err error) error {
	if gvk == nil || gvk.Kind == "" {
		return apierrors.NewBadRequest(err.Error())
	}
	if runtime.IsNotRegisteredError(err) {
		return sameKind(r, *gvk)
	}
	return apierrors.NewBadRequest(r.unhandled(*gvk, err.Error()))
}

// unhandled is the message that a body is not an object of the resource.
func (r *resource) unhandled(gvk schema.GroupVersionKind, reason string) string {
	return fmt.Sprintf("%s in version %q cannot be handled as a %s: %s", gvk.Kind, gvk.Version, r.gvk.Kind, reason)
}

// sameKind returns an error unless a body is of the resource's kind and version.
func sameKind(r *resource, got schema.GroupVersionKind) error {
	switch {
	case got == r.gvk:
		return nil
	case got.GroupVersion() != r.gvk.GroupVersion():
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the API version in the data (%s) does not match the expected API version (%s)",
			got.GroupVersion(), r.gvk.GroupVersion()))
	}
	return apierrors.NewBadRequest(r.unhandled(got, "it is of another kind"))
}
