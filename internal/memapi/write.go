package memapi

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// create answers a POST.
func (s *Server) create(q *request) (*answer, error) {
	_, err := options(q, metav1.Convert_url_Values_To_v1_CreateOptions, metavalidation.ValidateCreateOptions)
	if err != nil {
		return nil, err
	}
	object, err := s.decode(q)
	if err != nil {
		return nil, err
	}
	if q.resource.createOnly {
		return review(object), nil
	}
	rest.WipeObjectMetaSystemFields(object)
	if err := q.matchNamespace(object); err != nil {
		return nil, err
	}
	object, err = s.managed(q, s.blank(q.resource), object)
	if err != nil {
		return nil, err
	}
	created, err := s.insert(q, object)
	if err != nil {
		return nil, err
	}
	return s.answerObject(q, http.StatusCreated, created), nil
}

func (q *request) matchNamespace(object *unstructured.Unstructured) error {
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(
		rest.ExpectedNamespaceForResource(q.Namespace, q.resource.gvr()), object)
}

// insert stores a new object.
func (s *Server) insert(q *request, object *unstructured.Unstructured) (*stored, error) {
	rest.FillObjectMetaSystemFields(object)
	generated := object.GetName() == "" && object.GetGenerateName() != ""
	if generated {
		object.SetName(q.strategy().GenerateName(object.GetGenerateName()))
	}
	if q.resource.groupResource() == namespaces {
		q.Context = apirequest.WithNamespace(q.Context, object.GetName())
	}
	if object.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if err := s.admit(q, object); err != nil {
		return nil, err
	}
	if err := rest.BeforeCreate(strategyOf(q.resource, ""), q, object); err != nil {
		return nil, err
	}
	if q.resource.store.objects[key{object.GetNamespace(), object.GetName()}] != nil {
		if generated {
			return nil, apierrors.NewGenerateNameConflict(q.resource.groupResource(), object.GetName(), 1)
		}
		return nil, apierrors.NewAlreadyExists(q.resource.groupResource(), object.GetName())
	}
	return s.save(q, nil, object)
}

// admit returns an error for a new object in a namespace that does not exist or is being deleted,
// or of a CustomResourceDefinition that is being deleted.
func (s *Server) admit(q *request, object *unstructured.Unstructured) error {
	if q.resource.custom != nil && q.resource.custom.terminating {
		return apierrors.NewMethodNotSupported(q.resource.groupResource(), "create")
	}
	if !q.resource.namespaced {
		return nil
	}
	namespace := s.collections[namespaces].objects[key{"", q.Namespace}]
	if namespace == nil {
		return apierrors.NewNotFound(namespaces, q.Namespace)
	}
	if namespace.object.GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(q.resource.groupResource(), object.GetName(),
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", q.Namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Field: "metadata.namespace",
		Message: fmt.Sprintf("namespace %s is being terminated", q.Namespace),
	})
	return err
}

// save stores an object unless the request is a dry run.
func (s *Server) save(q *request, old *stored, object *unstructured.Unstructured) (*stored, error) {
	q.before = old
	if q.dryRun {
		return &stored{object: object, collection: q.resource.store}, nil
	}
	now, err := s.put(q.resource.store, old, object)
	q.after = now
	return now, err
}

// discard removes an object unless the request is a dry run.
func (s *Server) discard(q *request, old *stored) {
	q.before = old
	q.after = nil
	if !q.dryRun {
		s.remove(old)
	}
}

// answerObject answers with an object.
func (s *Server) answerObject(q *request, code int, o *stored) *answer {
	if q.Subresource == "scale" {
		return reply(code, q.resource.scaleOf(o.object))
	}
	return &answer{code: code, contentType: "application/json", body: s.present(q, o)}
}

// update answers a PUT.
func (s *Server) update(q *request) (*answer, error) {
	_, err := options(q, metav1.Convert_url_Values_To_v1_UpdateOptions, metavalidation.ValidateUpdateOptions)
	if err != nil {
		return nil, err
	}
	if q.Subresource == "scale" {
		return s.updateScale(q)
	}
	object, err := s.decode(q)
	if err != nil {
		return nil, err
	}
	if err := q.matchNamespace(object); err != nil {
		return nil, err
	}
	if err := q.matchName(object); err != nil {
		return nil, err
	}
	change := change{uid: object.GetUID(), upsert: q.resource.upsert && q.Subresource == ""}
	change.apply = func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return s.managed(q, live, object)
	}
	return s.change(q, change)
}

// matchName returns an error unless an object has the name of the URL.
func (q *request) matchName(object *unstructured.Unstructured) error {
	switch object.GetName() {
	case q.Name:
		return nil
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf(
			"the name of the object (%s based on URL) was undeterminable: %v", q.Name, "name must be provided"))
	}
	return apierrors.NewBadRequest(fmt.Sprintf(
		"the name of the object (%s) does not match the name on the URL (%s)", object.GetName(), q.Name))
}

// change is an update of an object.
type change struct {
	// apply returns the new state; live must not be changed. It is empty if there is no object.
	apply func(live *unstructured.Unstructured) (*unstructured.Unstructured, error)
	// uid is a precondition unless it is empty.
	uid types.UID
	// upsert reports whether the object is created if it does not exist.
	upsert bool
}

// change updates or creates an object, and answers with its new state.
func (s *Server) change(q *request, c change) (*answer, error) {
	old, err := s.find(q)
	if err != nil && !c.upsert {
		return nil, err
	}
	if err != nil {
		object, err := c.apply(s.blank(q.resource))
		if err != nil {
			return nil, err
		}
		if c.uid != "" || object.GetUID() != "" {
			return nil, apierrors.NewConflict(q.resource.groupResource(), q.Name, fmt.Errorf(
				"uid mismatch: the provided object specified uid %s, and no existing object was found", object.GetUID()))
		}
		object.SetResourceVersion("")
		created, err := s.insert(q, object)
		if err != nil {
			return nil, err
		}
		return s.answerObject(q, http.StatusCreated, created), nil
	}
	if c.uid != "" && c.uid != old.object.GetUID() {
		return nil, apierrors.NewConflict(q.resource.groupResource(), q.Name, fmt.Errorf("StorageError: invalid object, "+
			"Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, "+
			"UID in object meta: %v", q.storageKey(), c.uid, old.object.GetUID()))
	}
	updated, err := s.replace(q, old, c.apply)
	if err != nil {
		return nil, err
	}
	return s.answerObject(q, http.StatusOK, updated), nil
}

// storageKey returns the key that an object has in the storage of a real API server.
func (q *request) storageKey() string {
	parts := []string{"/registry"}
	if q.resource.custom != nil {
		parts = append(parts, q.resource.gvk.Group)
	}
	parts = append(parts, q.resource.plural)
	if q.resource.namespaced {
		parts = append(parts, q.Namespace)
	}
	return strings.Join(append(parts, q.Name), "/")
}

// replace updates an object that exists, and removes it if its last finalizer has gone.
func (s *Server) replace(
	q *request, old *stored, apply func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) (*stored, error) {
	live, _ := q.resource.convert(old.object)
	object, err := apply(live)
	if err != nil {
		return nil, err
	}
	if err := checkVersion(q, live, object); err != nil {
		return nil, err
	}
	if err := rest.BeforeUpdate(q.strategy(), q, object, live); err != nil {
		return nil, err
	}
	settled, err := fieldmanager.IgnoreManagedFieldsTimestampsTransformer(q, object, live)
	if err != nil {
		return nil, err
	}
	object = settled.(*unstructured.Unstructured) //nolint:forcetypeassert // it returns what it got
	if emptied(object, live) {
		s.discard(q, old)
		return &stored{object: object, collection: old.collection}, nil
	}
	if reflect.DeepEqual(object.Object, live.Object) {
		q.before = old
		q.after = old
		return old, nil
	}
	return s.save(q, old, object)
}

// emptied reports whether an update removes the last finalizer of an object that is being deleted.
func emptied(object, live *unstructured.Unstructured) bool {
	grace := live.GetDeletionGracePeriodSeconds()
	return live.GetDeletionTimestamp() != nil && len(object.GetFinalizers()) == 0 && (grace == nil || *grace == 0) &&
		!finalizing(object)
}

// checkVersion returns an error if an update is not of the present state.
func checkVersion(q *request, live, object *unstructured.Unstructured) error {
	switch object.GetResourceVersion() {
	case live.GetResourceVersion():
		return nil
	case "", "0":
		if !q.resource.conditional {
			object.SetResourceVersion(live.GetResourceVersion())
			return nil
		}
		kind := schema.GroupKind{Group: q.resource.gvk.Group, Kind: q.resource.plural}
		return apierrors.NewInvalid(kind, q.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
		})
	}
	return apierrors.NewConflict(q.resource.groupResource(), q.Name, fmt.Errorf(
		"the object has been modified; please apply your changes to the latest version and try again"))
}
