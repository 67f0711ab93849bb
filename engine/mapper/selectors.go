package mapper

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selectors is an index of the parents' selectors: it answers "which parents select an object with these labels?" by looking the
// object's labels up, without a scan of all parents.
type Selectors struct {
	mu sync.RWMutex // guards what follows
	// entries are all parents; each stands in the buckets of its selector.
	entries map[object.Key]*selecting
	buckets map[bucket]map[object.Key]*selecting
}

// selecting is one parent.
type selecting struct {
	namespace string // empty: all namespaces
	selector  labels.Selector
	buckets   []bucket
}

// bucket is one label that a selector asks for; the zero label holds the selectors that ask for none.
type bucket struct{ namespace, label, value string }

// NewSelectors makes an empty index.
func NewSelectors() *Selectors {
	return &Selectors{entries: map[object.Key]*selecting{}, buckets: map[bucket]map[object.Key]*selecting{}}
}

// Set notes a parent's selector, in place of an earlier one. A parent with an empty namespace selects in all namespaces.
func (s *Selectors) Set(key object.Key, namespace string, selector labels.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	e := &selecting{namespace: namespace, selector: selector, buckets: bucketsOf(namespace, selector)}
	s.entries[key] = e
	for _, b := range e.buckets {
		if s.buckets[b] == nil {
			s.buckets[b] = map[object.Key]*selecting{}
		}
		s.buckets[b][key] = e
	}
}

// Delete forgets a parent.
func (s *Selectors) Delete(key object.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
}

func (s *Selectors) remove(key object.Key) {
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

// Match lists the parents that select an object of a namespace with these labels.
func (s *Selectors) Match(namespace string, set map[string]string) []object.Key {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []object.Key
	for _, ns := range namespaces(namespace) {
		keys = s.collect(keys, bucket{namespace: ns}, set)
		for label, value := range set {
			keys = s.collect(keys, bucket{ns, label, value}, set)
		}
	}
	return keys
}

// namespaces are where a parent may be that selects in namespace: there, or anywhere.
func namespaces(namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	return []string{namespace, ""}
}

func (s *Selectors) collect(keys []object.Key, b bucket, set labels.Set) []object.Key {
	for key, e := range s.buckets[b] {
		if e.selector.Matches(set) {
			keys = append(keys, key)
		}
	}
	return keys
}

// bucketsOf files a selector under one label that it requires, once for each value that it allows. A parent stands in no two buckets that
// one object can be in, because an object has one value for each label.
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

// Orphans maps objects without a controller to the parents that select them, now or before the event.
func Orphans(index *Selectors) Func {
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
