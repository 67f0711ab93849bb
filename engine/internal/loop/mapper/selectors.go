package mapper

import (
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Selectors is an index of label selectors, one for each key. Match looks the labels of an object
// up instead of scanning all selectors. It is safe for concurrent use.
type Selectors[K comparable] struct {
	mu sync.RWMutex // guards the fields below
	// entries are all selectors; each is in its buckets, too.
	entries map[K]*selecting[K]
	buckets map[bucket]members[K]
}

// selecting is the selector of a key.
type selecting[K comparable] struct {
	key      K
	selector labels.Selector
	buckets  []bucket
}

// members are the selectors of one bucket. Most buckets have one, for which a map would take more
// memory than the selector.
type members[K comparable] struct {
	only *selecting[K]       // nil if there are several
	all  map[K]*selecting[K] // nil if there is one
}

// add returns the members with another one.
func (m members[K]) add(e *selecting[K]) members[K] {
	switch {
	case m.all != nil:
		m.all[e.key] = e
	case m.only != nil:
		m = members[K]{all: map[K]*selecting[K]{m.only.key: m.only, e.key: e}}
	default:
		m.only = e
	}
	return m
}

// remove returns the members without a key, and whether any are left.
func (m members[K]) remove(key K) (members[K], bool) {
	delete(m.all, key)
	return m, len(m.all) > 0
}

// appendMatching appends the keys of the members that match.
func (m members[K]) appendMatching(keys []K, set labels.Set) []K {
	if m.only != nil && m.only.selector.Matches(set) {
		keys = append(keys, m.only.key)
	}
	for key, e := range m.all {
		if e.selector.Matches(set) {
			keys = append(keys, key)
		}
	}
	return keys
}

// bucket holds the selectors that require one label with one value, or with any value; the bucket
// without a label holds those that require none.
type bucket struct {
	namespace, label, value string
	anyValue                bool
}

// NewSelectors returns an empty index.
func NewSelectors[K comparable]() *Selectors[K] {
	return &Selectors[K]{entries: map[K]*selecting[K]{}, buckets: map[bucket]members[K]{}}
}

// Set stores the selector of a key and replaces an earlier one. An empty namespace selects in all
// namespaces.
func (s *Selectors[K]) Set(key K, namespace string, selector labels.Selector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(key)
	e := &selecting[K]{key: key, selector: selector, buckets: bucketsOf(namespace, selector)}
	s.entries[key] = e
	for _, b := range e.buckets {
		s.buckets[b] = s.buckets[b].add(e)
	}
}

// Delete removes a key.
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
		if left, some := s.buckets[b].remove(key); some {
			s.buckets[b] = left
		} else {
			delete(s.buckets, b)
		}
	}
}

// Match returns the keys with a selector that matches an object with these labels in a namespace,
// in no order.
func (s *Selectors[K]) Match(namespace string, set map[string]string) []K {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []K
	for _, ns := range namespaces(namespace) {
		keys = s.collect(keys, bucket{namespace: ns}, set)
		for label, value := range set {
			keys = s.collect(keys, bucket{namespace: ns, label: label, value: value}, set)
			keys = s.collect(keys, bucket{namespace: ns, label: label, anyValue: true}, set)
		}
	}
	return keys
}

// namespaces returns the namespaces of the selectors that can match objects of a namespace: that
// namespace, or all (empty).
func namespaces(namespace string) []string {
	if namespace == "" {
		return []string{""}
	}
	return []string{namespace, ""}
}

func (s *Selectors[K]) collect(keys []K, b bucket, set labels.Set) []K {
	return s.buckets[b].appendMatching(keys, set)
}

// bucketsOf returns the buckets of a selector: one label that it requires, once for each value that
// it allows. An object has one value for each label, so it meets a selector in one bucket at most.
func bucketsOf(namespace string, selector labels.Selector) []bucket {
	requirements, _ := selector.Requirements()
	fallback := bucket{namespace: namespace}
	for _, r := range requirements {
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			var found []bucket
			for value := range r.Values() {
				found = append(found, bucket{namespace: namespace, label: r.Key(), value: value})
			}
			return found
		case selection.Exists:
			fallback = bucket{namespace: namespace, label: r.Key(), anyValue: true}
		}
	}
	return []bucket{fallback}
}

// Orphans maps objects without a controlling owner to the keys with a selector that matches them,
// now or before the event.
func Orphans[K comparable](index *Selectors[K]) Func[K] {
	return func(old, current *object.Object) []K {
		var keys []K
		for _, o := range []*object.Object{old, current} {
			if o != nil && o.ControllerRef() == nil {
				keys = append(keys, index.Match(o.Namespace(), o.Labels())...)
			}
		}
		return keys
	}
}
