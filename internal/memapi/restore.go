package memapi

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// Restore stores an object as another API server had it, with its uid, generation, timestamps,
// owners, finalizers and status. A missing uid or creationTimestamp is filled in as for a new
// object. If there is an object with the same name, it is replaced. The write does not appear in
// the log. If the object could not be created, Restore returns the error that a request would get.
//
// Owners that this server does not have count as existing, until an object with their uid is
// deleted here.
func (s *Server) Restore(ctx context.Context, object map[string]any) error {
	u := (&unstructured.Unstructured{Object: object}).DeepCopy()
	s.mu.Lock()
	r := s.ofKind(u.GroupVersionKind())
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("%s is not served; expected a built-in kind or one of a CustomResourceDefinition",
			u.GroupVersionKind())
	}
	if !r.namespaced {
		u.SetNamespace("")
	}
	prepared, err := s.prepared(ctx, r, u)
	if err != nil {
		return err
	}
	body, err := json.Marshal(prepared.Object)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stored, _, err := s.read(r, body)
	if err != nil {
		return err
	}
	if err := s.keep(r, stored); err != nil {
		return err
	}
	return s.collectGarbage()
}

// prepared returns the object as a request that creates it would store it, but with the object's
// own metadata and status; or the error of that request.
func (s *Server) prepared(ctx context.Context, r *resource, u *unstructured.Unstructured) (
	*unstructured.Unstructured, error,
) {
	s.mu.Lock()
	exists := r.store.objects[key{u.GetNamespace(), u.GetName()}] != nil
	s.mu.Unlock()
	if exists {
		return u, nil
	}
	fresh := u.DeepCopy()
	fresh.SetUID("")
	fresh.SetResourceVersion("")
	fresh.SetManagedFields(nil)
	path := r.path(u.GetNamespace(), "") + "?dryRun=All&fieldValidation=Strict"
	body, err := s.send(ctx, http.MethodPost, path, fresh)
	if err != nil {
		return nil, err
	}
	created := &unstructured.Unstructured{}
	if err := json.Unmarshal(body, &created.Object); err != nil {
		return nil, err
	}
	own, _ := u.Object["metadata"].(map[string]any)
	if metadata, ok := created.Object["metadata"].(map[string]any); ok {
		maps.Copy(metadata, own)
	}
	if status, ok := u.Object["status"]; ok {
		created.Object["status"] = status
	}
	return created, nil
}

// complete sets the metadata that every stored object has.
func complete(u *unstructured.Unstructured) {
	if u.GetUID() == "" {
		u.SetUID(uuid.NewUUID())
	}
	if at := u.GetCreationTimestamp(); at.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	if u.GetGeneration() == 0 {
		u.SetGeneration(1)
	}
}
