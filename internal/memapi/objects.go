package memapi

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Objects returns copies of all objects, sorted by resource, namespace and name.
func (s *Server) Objects() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, c := range s.sortedCollections() {
		for _, k := range keys(c.objects, "") {
			all = append(all, c.objects[k].object.DeepCopy())
		}
	}
	return all
}

// ObjectsOf returns copies of the objects of a resource, sorted by namespace and name.
func (s *Server) ObjectsOf(r schema.GroupResource) []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[r]
	if c == nil {
		return nil
	}
	var all []*unstructured.Unstructured
	for _, k := range keys(c.objects, "") {
		all = append(all, c.objects[k].object.DeepCopy())
	}
	return all
}

// Kind returns the kind of a resource and whether its objects have a namespace; false if it is not
// served.
func (s *Server) Kind(r schema.GroupVersionResource) (gvk schema.GroupVersionKind, namespaced, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.resources[r]
	if found == nil {
		return schema.GroupVersionKind{}, false, false
	}
	return found.gvk, found.namespaced, true
}

// Resource returns the resource of a kind and whether its objects have a namespace; false if it is
// not served.
func (s *Server) Resource(k schema.GroupVersionKind) (gvr schema.GroupVersionResource, namespaced, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.ofKind(k)
	if found == nil {
		return schema.GroupVersionResource{}, false, false
	}
	return found.gvr(), found.namespaced, true
}
