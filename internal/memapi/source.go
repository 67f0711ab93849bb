package memapi

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Source has the objects of another API server, for a Server that begins with them.
type Source interface {
	// List returns all objects of a resource. They are stored as they are, and are the Server's from
	// then on. An error fails the request that needs them.
	List(ctx context.Context, r schema.GroupVersionResource) ([]*unstructured.Unstructured, error)
}

// fill stores the objects of the source before the first read of their resource. The caller does
// not hold the server's mutex.
func (s *Server) fill(q *request) error {
	if s.options.Source == nil || !isRead(q.Verb) {
		return nil
	}
	r := s.unfilled(q)
	if r == nil {
		return nil
	}
	s.filling.Lock()
	defer s.filling.Unlock()
	r = s.unfilled(q)
	if r == nil { // another request was faster
		return nil
	}
	objects, err := s.options.Source.List(q.Context, r.gvr())
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		if err := s.keep(r, o); err != nil {
			return err
		}
	}
	r.store.filled = true
	return s.collectGarbage()
}

// unfilled returns the resource of a request if the objects of the source are not stored yet, and
// are needed: the get of an object that the server has does not need them.
func (s *Server) unfilled(q *request) *resource {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.resources[schema.GroupVersionResource{Group: q.APIGroup, Version: q.APIVersion, Resource: q.Resource}]
	if r == nil || r.store.filled || r.createOnly {
		return nil
	}
	of := key{q.Namespace, q.Name}
	if !r.namespaced {
		of.namespace = ""
	}
	if q.Verb == "get" && r.store.objects[of] != nil {
		return nil
	}
	return r
}

// keep stores an object with its own metadata, in place of one of its name. Owners that the server
// does not have count as existing. The caller holds the server's mutex.
func (s *Server) keep(r *resource, o *unstructured.Unstructured) error {
	complete(o)
	for _, owner := range o.GetOwnerReferences() {
		if s.objects[owner.UID] == nil {
			s.foreign[owner.UID] = true
		}
	}
	delete(s.foreign, o.GetUID())
	_, err := s.put(r.store, r.store.objects[key{o.GetNamespace(), o.GetName()}], o)
	return err
}
