package mapper

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selectors is an index of label selectors, each under a key: it answers "whose selector takes in
// an object with these labels?" by looking the object's labels up, without a scan of all selectors.
// The key of a parent's own selector is the parent's.
type Selectors[K comparable] struct {
	mu sync.RWMutex // guards what follows
	// entries are all selectors; each stands in its buckets.
	entries map[K]*selecting
	buckets map[bucket]map[K]*selecting
}

// selecting is one selector.
type selecting struct {
	namespace string // empty: all namespaces
	selector  labels.Selector
	buckets   []bucket
}

// bucket is one label that a selector asks for; the zero label holds the selectors that ask for
// none.
type bucket struct{ namespace, label, value string }

// NewSelectors makes an empty index.
func NewSelectors[K comparable]() *Selectors[K] {
	return &Selectors[K]{entries: map[K]*selecting{}, buckets: map[bucket]map[K]*selecting{}}
}

// Set notes a selector, in place of an earlier one of the key. With an empty namespace it selects
// in all namespaces.
func (s *Selectors[K]) Set(key K, namespace string, selector labels.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	e := &selecting{namespace: namespace, selector: selector, buckets: bucketsOf(namespace, selector)}
	s.entries[key] = e
	for _, b := range e.buckets {
		if s.buckets[b] == nil {
			s.buckets[b] = map[K]*selecting{}
		}
		s.buckets[b][key] = e
	}
}

// Delete forgets a key.
func (s *Selectors[K]) Delete(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

func (s *Selectors[K]) remove(key K) {
	e, ok := s.entries[key]
	if !ok {
		return
	}
	delete(s.entries, key)
	for _, b := range e.buckets {
		delete(s.buckets[b], key)
		if len(s.buckets[b]) == 0 {
			delete(s.buckets, b)
		}
	}
}

// Match lists the keys whose selectors take in an object of a namespace with these labels.
func (s *Selectors[K]) Match(namespace string, set map[string]string) []K {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []K
	for _, ns := range namespaces(namespace) {
		keys = s.collect(keys, bucket{namespace: ns}, set)
		for label, value := range set {
			keys = s.collect(keys, bucket{ns, label, value}, set)
		}
	}
	return keys
}

// namespaces are what selectors may name that take in objects of a namespace: it, or all.
func namespaces(namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	return []string{namespace, ""}
}

func (s *Selectors[K]) collect(keys []K, b bucket, set labels.Set) []K {
	for key, e := range s.buckets[b] {
		if e.selector.Matches(set) {
			keys = append(keys, key)
		}
	}
	return keys
}

// bucketsOf files a selector under one label that it requires, once for each value that it allows.
// A parent stands in no two buckets that one object can be in, because an object has one value for
// each label.
func bucketsOf(namespace string, selector labels.Selector) []bucket {
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			var found []bucket
			for value := range r.Values() {
				found = append(found, bucket{namespace, r.Key(), value})
			}
			return found
		}
	}
	return []bucket{{namespace: namespace}}
}

// Orphans maps objects without a controller to the parents that select them, now or before the
// event.
func Orphans(index *Selectors[object.Key]) Func {
	return func(old, current *object.Object) []object.Key {
		var keys []object.Key
		for _, o := range []*object.Object{old, current} {
			if o != nil && o.ControllerRef() == nil {
				keys = append(keys, index.Match(o.Namespace(), o.Labels())...)
			}
		}
		return keys
	}
}
