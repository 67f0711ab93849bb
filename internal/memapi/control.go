package memapi

import (
	"slices"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault makes requests fail. An empty field matches every request.
type Fault struct {
	Verb, Group, Resource, Subresource string
	Namespace, Name                    string
	// Times is how many requests should fail; a negative number means all.
	Times int
	// Status is what the server answers.
	Status metav1.Status
}

func (f *Fault) matches(q *request) bool {
	for _, pair := range [][2]string{
		{f.Verb, q.Verb}, {f.Resource, q.Resource}, {f.Namespace, q.Namespace}, {f.Name, q.Name},
		{f.Subresource, q.Subresource},
	} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return f.Resource == "" || f.Group == q.APIGroup
}

// Fail makes the next requests fail that match f. Call end to stop that.
func (s *Server) Fail(f Fault) (end func()) {
	own := &f
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, own)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.faults = slices.DeleteFunc(s.faults, func(o *Fault) bool { return o == own })
	}
}

// fault returns the error of the first fault that matches a request.
func (s *Server) fault(q *request) error {
	for i, f := range s.faults {
		if !f.matches(q) {
			continue
		}
		if f.Times > 0 {
			f.Times--
			if f.Times == 0 {
				s.faults = slices.Delete(s.faults, i, i+1)
			}
		}
		status := f.Status
		status.Status = metav1.StatusFailure
		return &apierrors.StatusError{ErrStatus: status}
	}
	return nil
}

// Hold stops sending events of a resource to all watches, so that caches become stale.
func (s *Server) Hold(r schema.GroupResource) { s.hold(r, true) }

// Release sends the events that were held.
func (s *Server) Release(r schema.GroupResource) { s.hold(r, false) }

func (s *Server) hold(r schema.GroupResource, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		c.held = held
		c.wake()
	}
}

// DropWatches ends the open watches of a resource, as a restart of the server would.
func (s *Server) DropWatches(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		c.dropWatches()
	}
}

// Forget drops the events of a resource. A watch from an earlier version then gets "410 Gone".
func (s *Server) Forget(r schema.GroupResource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		c.forget(len(c.events))
		c.forgotten = s.version
	}
}

// Bookmark sends a bookmark to all watches of a resource, and returns its resourceVersion.
func (s *Server) Bookmark(r schema.GroupResource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		for w := range c.watchers {
			w.bookmark = true
		}
		c.wake()
	}
	return strconv.FormatUint(s.version, 10)
}

// Watches returns how many watches of a resource are open.
func (s *Server) Watches(r schema.GroupResource) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		return len(c.watchers)
	}
	return 0
}

// Latest returns the resourceVersion of the last change of a resource, or "0" if there was none. A
// cache that has reached it is up to date.
func (s *Server) Latest(r schema.GroupResource) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.collections[r]; c != nil {
		return strconv.FormatUint(c.latest, 10)
	}
	return "0"
}

// Delivered returns true if every open watch has got all events.
func (s *Server) Delivered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.collections {
		for w := range c.watchers {
			if w.initial.Len() > 0 || w.position != c.first+len(c.events) {
				return false
			}
		}
	}
	return true
}

// Version returns the last resourceVersion of all resources.
func (s *Server) Version() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatUint(s.version, 10)
}
