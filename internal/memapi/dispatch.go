package memapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

// answer processes a request.
func (s *Server) answer(r *http.Request) *answer {
	q, err := parse(r)
	if err != nil {
		return fail(err)
	}
	if !q.IsResourceRequest {
		return s.document(r)
	}
	if err := s.fill(q); err != nil {
		return fail(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fail(apierrors.NewServiceUnavailable("the server is closed"))
	}
	a, err := s.process(q)
	if err != nil {
		a = fail(err)
	}
	a.warnings = q.warnings
	if !isRead(q.Verb) {
		s.audit.add(q, a.code, err)
	}
	return a
}

func isRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// process routes a request about a resource.
func (s *Server) process(q *request) (*answer, error) {
	if err := s.route(q); err != nil {
		return nil, err
	}
	if err := s.fault(q); err != nil {
		return nil, err
	}
	a, err := s.handle(q)
	if err == nil && !isRead(q.Verb) {
		err = s.collectGarbage()
	}
	return a, err
}

// route finds the resource of a request.
func (s *Server) route(q *request) error {
	q.resource = s.resources[schema.GroupVersionResource{Group: q.APIGroup, Version: q.APIVersion, Resource: q.Resource}]
	switch {
	case q.resource == nil, q.Subresource != "" && len(q.Parts) != 3,
		!q.resource.namespaced && q.Namespace != "" && q.resource.groupResource() != namespaces,
		q.resource.namespaced && q.Name != "" && q.Namespace == "":
		return errNoRoute()
	case q.Subresource != "" && !slices.Contains(q.resource.subresources(), q.Subresource):
		return errNoRoute()
	case !q.resource.supports(q.Verb, q.Subresource),
		q.Verb == "create" && q.resource.namespaced && q.Namespace == "" && !q.resource.createOnly:
		return q.errNotAllowed()
	}
	if !q.resource.namespaced {
		q.Namespace = ""
	}
	q.Context = apirequest.WithNamespace(q.Context, q.Namespace)
	return nil
}

func (s *Server) handle(q *request) (*answer, error) {
	switch q.Verb {
	case "get":
		return s.get(q)
	case "list":
		return s.list(q)
	case "watch":
		return s.open(q)
	case "create":
		return s.create(q)
	case "update":
		return s.update(q)
	case "patch":
		return s.patch(q)
	case "delete":
		return s.delete(q)
	case "deletecollection":
		return s.deleteCollection(q)
	}
	return nil, q.errNotAllowed()
}

// Put creates or replaces an object, with its status.
func (s *Server) Put(ctx context.Context, object map[string]any) error {
	u := &unstructured.Unstructured{Object: object}
	s.mu.Lock()
	r := s.ofKind(u.GroupVersionKind())
	s.mu.Unlock()
	if r == nil {
		return fmt.Errorf("%s is not served; expected a built-in kind or one of a CustomResourceDefinition",
			u.GroupVersionKind())
	}
	u = u.DeepCopy()
	u.SetResourceVersion("")
	u.SetUID("")
	err := s.do(ctx, http.MethodPost, r.path(u.GetNamespace(), ""), u)
	if apierrors.IsAlreadyExists(err) {
		err = s.do(ctx, http.MethodPut, r.path(u.GetNamespace(), u.GetName()), u)
	}
	if err != nil || !r.status || u.Object["status"] == nil {
		return err
	}
	return s.do(ctx, http.MethodPatch, r.path(u.GetNamespace(), u.GetName())+"/status", &unstructured.Unstructured{
		Object: map[string]any{"status": u.Object["status"]},
	})
}

// do sends a request from inside of the process.
func (s *Server) do(ctx context.Context, method, path string, body *unstructured.Unstructured) error {
	_, err := s.send(ctx, method, path, body)
	return err
}

// send is do with the body of the response.
func (s *Server) send(ctx context.Context, method, path string, body *unstructured.Unstructured) ([]byte, error) {
	data, err := json.Marshal(body.Object)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://memapi.invalid"+path, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", "memapi")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	a := s.answer(r)
	if a.code < http.StatusBadRequest {
		return a.body, nil
	}
	failed := &apierrors.StatusError{}
	if err := json.Unmarshal(a.body, &failed.ErrStatus); err != nil {
		return nil, fmt.Errorf("%s %s: %s", method, path, a.body)
	}
	return nil, failed
}

// path returns the URL path of an object, or of the collection if name is empty.
func (r *resource) path(namespace, name string) string {
	parts := []string{"", "apis", r.gvk.Group, r.gvk.Version}
	if r.gvk.Group == "" {
		parts = []string{"", "api", r.gvk.Version}
	}
	if r.namespaced {
		parts = append(parts, "namespaces", namespace)
	}
	parts = append(parts, r.plural)
	if name != "" {
		parts = append(parts, name)
	}
	return strings.Join(parts, "/")
}
