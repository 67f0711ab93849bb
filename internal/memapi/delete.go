package memapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	kjson "sigs.k8s.io/json"
)

// deleteOptions reads the options of a DELETE, from its body or its query.
func (s *Server) deleteOptions(q *request) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	if len(q.body) == 0 {
		return options(q, metav1.Convert_url_Values_To_v1_DeleteOptions, metavalidation.ValidateDeleteOptions)
	}
	body, err := s.bodyJSON(q)
	if err != nil {
		return nil, err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metavalidation.ValidateDeleteOptions(o); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	q.dryRun = q.dryRun || slices.Contains(o.DryRun, metav1.DryRunAll)
	return o, nil
}

// delete answers a DELETE of an object.
func (s *Server) delete(q *request) (*answer, error) {
	o, err := s.deleteOptions(q)
	if err != nil {
		return nil, err
	}
	old, err := s.find(q)
	if err != nil {
		return nil, err
	}
	if q.resource.groupResource() == namespaces && words("default kube-system kube-public")[q.Name] {
		return nil, apierrors.NewForbidden(namespaces, q.Name, fmt.Errorf("this namespace may not be deleted"))
	}
	left, err := s.erase(q, old, o)
	if err != nil {
		return nil, err
	}
	code := http.StatusOK
	if left != nil {
		if o.OrphanDependents != nil && !*o.OrphanDependents { //nolint:staticcheck // old clients send it
			code = http.StatusAccepted
		}
		return s.answerObject(q, code, left), nil
	}
	if q.resource.returnsDeleted {
		return s.answerObject(q, code, old), nil
	}
	return reply(code, &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: q.Name, Group: q.resource.gvk.Group, Kind: q.resource.plural, UID: old.object.GetUID(),
		},
	}), nil
}

// withCleanup adds the finalizer with which the objects of a definition are deleted before it.
func withCleanup(finalizers []string) []string {
	if slices.Contains(finalizers, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return finalizers
	}
	return append(slices.Clone(finalizers), apiextensionsv1.CustomResourceCleanupFinalizer)
}

// erase deletes an object. If it stays, because something has to be done before, erase returns its
// new state, else nil.
func (s *Server) erase(q *request, old *stored, o *metav1.DeleteOptions) (*stored, error) {
	object, _ := q.resource.convert(old.object)
	object = object.DeepCopy()
	graceful, pending, err := rest.BeforeDelete(strategyOf(q.resource, ""), q, object, o)
	if err != nil {
		return nil, err
	}
	if pending {
		return old, nil
	}
	if q.resource.groupResource() != definitions || object.GetDeletionTimestamp() == nil {
		object.SetFinalizers(finalizersFor(object.GetFinalizers(), o))
	}
	if q.resource.groupResource() == definitions && object.GetDeletionTimestamp() == nil {
		object.SetFinalizers(withCleanup(object.GetFinalizers()))
	}
	finalizers := len(object.GetFinalizers()) > 0 || finalizing(object)
	if !graceful && !finalizers {
		s.discard(q, old)
		return nil, nil //nolint:nilnil // no object is left
	}
	if !graceful {
		markDeleted(object)
	}
	if finalizing(object) {
		terminate(object)
	}
	left := old
	if !sameContent(object, old.object) {
		left, err = s.save(q, old, object)
		if err != nil {
			return nil, err
		}
	}
	if !finalizers && *o.GracePeriodSeconds == 0 {
		s.discard(q, left)
		return nil, nil //nolint:nilnil // no object is left
	}
	return left, nil
}

// finalizersFor returns the finalizers with those of the garbage collector that the options ask
// for.
func finalizersFor(present []string, o *metav1.DeleteOptions) []string {
	policy := metav1.DeletePropagationBackground
	switch {
	case o.OrphanDependents != nil && *o.OrphanDependents: //nolint:staticcheck // old clients send it
		policy = metav1.DeletePropagationOrphan
	case o.PropagationPolicy != nil:
		policy = *o.PropagationPolicy
	case o.OrphanDependents != nil: //nolint:staticcheck // old clients send it
	case slices.Contains(present, metav1.FinalizerOrphanDependents):
		policy = metav1.DeletePropagationOrphan
	case slices.Contains(present, metav1.FinalizerDeleteDependents):
		policy = metav1.DeletePropagationForeground
	}
	var kept []string
	for _, f := range present {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			kept = append(kept, f)
		}
	}
	switch policy {
	case metav1.DeletePropagationOrphan:
		return append(kept, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		return append(kept, metav1.FinalizerDeleteDependents)
	}
	return kept
}

// markDeleted marks an object that waits for its finalizers.
func markDeleted(object *unstructured.Unstructured) {
	if object.GetDeletionTimestamp() == nil {
		if g := object.GetGeneration(); g > 0 {
			object.SetGeneration(g + 1)
		}
		now := metav1.Now()
		object.SetDeletionTimestamp(&now)
	}
	zero := int64(0)
	object.SetDeletionGracePeriodSeconds(&zero)
}

// terminate gives a Namespace that is being deleted its phase.
func terminate(namespace *unstructured.Unstructured) {
	namespace.SetDeletionGracePeriodSeconds(nil)
	namespace.Object["status"] = map[string]any{"phase": string(corev1.NamespaceTerminating)}
}

// deleteCollection answers a DELETE of all selected objects.
func (s *Server) deleteCollection(q *request) (*answer, error) {
	o, err := s.deleteOptions(q)
	if err != nil {
		return nil, err
	}
	listing, err := listOptions(q)
	if err != nil {
		return nil, err
	}
	selected, err := newSelection(q, listing)
	if err != nil {
		return nil, err
	}
	found, err := s.page(q.resource.store, listing, selected)
	if err != nil {
		return nil, err
	}
	var items []string
	for _, item := range found.items {
		if _, err := s.erase(q, item, o.DeepCopy()); err != nil && !isNotFound(err) {
			return nil, err
		}
		items = append(items, string(s.presentItem(q, item)))
	}
	body := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"},"items":[%s]}`,
		q.resource.listKind, q.resource.gvk.GroupVersion(), s.version, strings.Join(items, ","))
	return &answer{code: http.StatusOK, contentType: "application/json", body: []byte(body)}, nil
}
