// Package references holds the bound references of a controller's keys: the reads of a key's last
// reconcile. An event on an object that a key has read, that a read would find now, or that it
// would have found before, maps to the key.
//
// A reference is an object's name (also of an object that does not exist), a namespace with a label
// selector, a value of an index, an owner, or a whole resource. All are looked up in maps: no event
// scans the keys, and no read scans the references. The package is pure; package controller records
// the reads of reconciles and passes events in.
//
// A Store is safe for concurrent use. A property test compares it with a scan over all reads.
package references

import (
	"container/list"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Limits bound the memory of a Store. A limit is never a lost event: beyond it, references become
// coarser.
type Limits struct {
	// PerKey is the largest number of references of a key to one resource. A key with more is bound
	// to the whole resource: every event of the resource maps to it. Default 10,000.
	PerKey int
	// Total is the same for the references of all keys together. Default 2,000,000.
	Total int
	// Idle is the largest number of idle keys (see Recorder.Done). Beyond it, those that became idle
	// first are forgotten, as a restart would forget them. Default 10,000.
	Idle int
}

func (l Limits) withDefaults() Limits {
	for limit, value := range map[*int]int{&l.PerKey: 10_000, &l.Total: 2_000_000, &l.Idle: 10_000} {
		if *limit <= 0 {
			*limit = value
		}
	}
	return l
}

// Store holds the references of keys of type K.
type Store[K comparable] struct {
	limits Limits

	mu sync.RWMutex // guards the fields below, and everything that they reach
	// Invariant: a dependent is in keys if and only if it has references.
	keys      map[K]*dependent[K]
	resources map[object.Resource]*resource[K]
	// idle are the idle keys; the one that became idle first is at the front.
	idle  *list.List
	stats Stats
}

// Stats are figures of a Store.
type Stats struct {
	// Keys is the number of keys with references; Idle is the number of those that are idle.
	Keys, Idle int
	// References is the number of references of all keys; Distinct counts those once that several
	// keys share.
	References, Distinct int
	// Coarse is the number of references to whole resources, because of the limits.
	Coarse int
	// Bytes is an estimate of the memory of the references.
	Bytes int
}

// dependent is a key with its references.
type dependent[K comparable] struct {
	key        K
	references set[*reference[K]]
	// idle is the key's place in Store.idle; nil if it is not idle.
	idle *list.Element
}

// resource holds the references to the objects of one resource.
type resource[K comparable] struct {
	of         object.Resource
	references map[target]*reference[K]
	selectors  *mapper.Selectors[*reference[K]]
	// indexes counts the references by each index.
	indexes map[*view.Index]int
}

// reference is one read that all of its keys have done.
type reference[K comparable] struct {
	resource *resource[K]
	target   target
	keys     set[*dependent[K]]
}

// target is what a reference names. It is comparable: equal reads are one reference.
type target struct {
	kind kind
	// namespace is that of an object or of a selector.
	namespace string
	// value is an object's name, a selector, an owner's UID, or a value of index.
	value string
	index *view.Index
}

type kind uint8

const (
	byName kind = iota
	selected
	owned
	indexed
	whole
)

// NewStore returns an empty Store.
func NewStore[K comparable](l Limits) *Store[K] {
	return &Store[K]{
		limits: l.withDefaults(), keys: map[K]*dependent[K]{},
		resources: map[object.Resource]*resource[K]{}, idle: list.New(),
	}
}

// Forget drops the references of a key.
func (s *Store[K]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d := s.keys[key]; d != nil {
		s.drop(d)
	}
}

// Stats returns the present figures.
func (s *Store[K]) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	stats := s.stats
	stats.Keys, stats.Idle = len(s.keys), s.idle.Len()
	stats.Bytes += stats.References*linkBytes + stats.Keys*keyBytes
	return stats
}

// The sizes are estimates: the test of memory compares them with the heap.
const (
	linkBytes      = 32
	keyBytes       = 320
	referenceBytes = 240
)

// bind adds a reference to a key if it does not have it, and returns it. add is called with a
// reference that no key had.
func (s *Store[K]) bind(d *dependent[K], r *resource[K], t target, add func(*reference[K])) *reference[K] {
	ref := r.references[t]
	if ref == nil {
		ref = &reference[K]{resource: r, target: t}
		r.references[t] = ref
		s.stats.Distinct++
		s.stats.Bytes += referenceBytes + len(t.value)
		if add != nil {
			add(ref)
		}
	}
	if ref.keys.has(d) {
		return ref
	}
	ref.keys.add(d)
	d.references.add(ref)
	s.stats.References++
	if t.kind == whole {
		s.stats.Coarse++
	}
	return ref
}

// full reports whether one more reference of a key to a target exceeds a limit.
func (s *Store[K]) full(d *dependent[K], r *resource[K], t target) bool {
	if ref := r.references[t]; ref != nil && ref.keys.has(d) {
		return false
	}
	return s.stats.References >= s.limits.Total || d.references.size() >= maxKept*s.limits.PerKey
}

// maxKept bounds the references that a key keeps over failed reconciles: that many times
// Limits.PerKey.
const maxKept = 4

// dependent returns the record of a key. The caller adds a reference to it.
func (s *Store[K]) dependent(key K) *dependent[K] {
	d := s.keys[key]
	if d == nil {
		d = &dependent[K]{key: key}
		s.keys[key] = d
	}
	return d
}

func (s *Store[K]) resource(of object.Resource) *resource[K] {
	r := s.resources[of]
	if r == nil {
		r = &resource[K]{
			of: of, references: map[target]*reference[K]{},
			selectors: mapper.NewSelectors[*reference[K]](), indexes: map[*view.Index]int{},
		}
		s.resources[of] = r
	}
	return r
}

// release takes a reference from a key. The key is dropped with its last reference.
func (s *Store[K]) release(d *dependent[K], ref *reference[K]) {
	ref.keys.remove(d)
	d.references.remove(ref)
	s.stats.References--
	if ref.target.kind == whole {
		s.stats.Coarse--
	}
	if d.references.size() == 0 {
		s.wake(d)
		delete(s.keys, d.key)
	}
	if ref.keys.size() == 0 {
		s.remove(ref)
	}
}

// remove drops a reference without keys.
func (s *Store[K]) remove(ref *reference[K]) {
	r := ref.resource
	delete(r.references, ref.target)
	s.stats.Distinct--
	s.stats.Bytes -= referenceBytes + len(ref.target.value)
	switch ref.target.kind {
	case selected:
		r.selectors.Delete(ref)
	case indexed:
		r.indexes[ref.target.index]--
		if r.indexes[ref.target.index] == 0 {
			delete(r.indexes, ref.target.index)
		}
	}
	if len(r.references) == 0 {
		delete(s.resources, r.of)
	}
}

// drop releases all references of a key.
func (s *Store[K]) drop(d *dependent[K]) {
	for _, ref := range d.references.clone() {
		s.release(d, ref)
	}
}

// rest notes that a key is idle, and forgets the keys beyond the limit.
func (s *Store[K]) rest(d *dependent[K]) {
	s.wake(d)
	d.idle = s.idle.PushBack(d)
	for s.idle.Len() > s.limits.Idle {
		s.drop(s.idle.Front().Value.(*dependent[K]))
	}
}

// wake notes that a key is not idle.
func (s *Store[K]) wake(d *dependent[K]) {
	if d.idle != nil {
		s.idle.Remove(d.idle)
		d.idle = nil
	}
}
