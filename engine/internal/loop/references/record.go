package references

import (
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Recorder records the reads of one reconcile of a key. Each method must be called before its read:
// then no change between the read and the end of the reconcile is lost, because its event finds the
// reference. One of Done and Failed ends it; methods that are called afterwards do nothing.
//
// A key has one open Recorder at a time. Its methods are safe for concurrent use.
type Recorder[K comparable] struct {
	store *Store[K]
	key   K
	// read are the references of this reconcile; guarded by the store's lock.
	read set[*reference[K]]
	// count is the number of references of this reconcile by resource. Beyond the limit, the one to
	// the whole resource replaces them.
	count map[object.Resource]int
	ended bool
}

// Begin starts a reconcile of a key. The key keeps its references meanwhile.
func (s *Store[K]) Begin(key K) *Recorder[K] { return &Recorder[K]{store: s, key: key} }

// Object records a read of one object by name, whether or not it exists.
func (r *Recorder[K]) Object(of object.Resource, namespace, name string) {
	r.record(of, target{kind: byName, namespace: namespace, value: name}, nil)
}

// Selected records a list of the objects of a namespace ("" for all) that a selector matches.
func (r *Recorder[K]) Selected(of object.Resource, namespace string, selector labels.Selector) {
	if _, selectable := selector.Requirements(); !selectable { // it matches nothing, ever
		return
	}
	r.record(of, target{kind: selected, namespace: namespace, value: selector.String()},
		func(ref *reference[K]) { ref.resource.selectors.Set(ref, namespace, selector) })
}

// Owned records a list of the objects that an owner controls.
func (r *Recorder[K]) Owned(of object.Resource, owner view.Owner) {
	r.record(of, target{kind: owned, namespace: owner.Namespace, value: string(owner.UID)}, nil)
}

// Indexed records a list of the objects for which an index has a value.
func (r *Recorder[K]) Indexed(of object.Resource, i *view.Index, value string) {
	r.record(of, target{kind: indexed, index: i, value: value},
		func(ref *reference[K]) { ref.resource.indexes[i]++ })
}

// record binds the key to a target, or to the whole resource if a limit is reached. add is called
// with a reference that no key had.
func (r *Recorder[K]) record(of object.Resource, t target, add func(*reference[K])) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ended {
		return
	}
	if r.coarse(of) {
		return
	}
	d := s.dependent(r.key)
	at := s.resource(of)
	if r.count[of] >= s.limits.PerKey || s.full(d, at, t) {
		t = target{kind: whole}
		add = nil
	}
	ref := s.bind(d, at, t, add)
	if r.read.has(ref) {
		return
	}
	r.read.add(ref)
	if r.count == nil {
		r.count = map[object.Resource]int{}
	}
	r.count[of]++
}

// coarse reports whether the reconcile is bound to a whole resource.
func (r *Recorder[K]) coarse(of object.Resource) bool {
	at := r.store.resources[of]
	if at == nil {
		return false
	}
	ref := at.references[target{kind: whole}]
	return ref != nil && r.read.has(ref)
}

// Len returns the number of references of the reconcile so far.
func (r *Recorder[K]) Len() int {
	r.store.mu.RLock()
	defer r.store.mu.RUnlock()
	return r.read.size()
}

// Done ends a reconcile without an error: its reads replace the key's references.
//
// idle reports that the key's object does not exist and that the reconcile has found nothing. The
// Store keeps the references of a limited number of idle keys (Limits.Idle).
func (r *Recorder[K]) Done(idle bool) {
	s := r.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	d := s.keys[r.key]
	if d == nil {
		return
	}
	for _, ref := range d.references.clone() {
		if !r.read.has(ref) || ref.target.kind != whole && r.coarse(ref.resource.of) {
			s.release(d, ref)
		}
	}
	if s.keys[r.key] == nil {
		return
	}
	if idle {
		s.rest(d)
	} else {
		s.wake(d)
	}
}

// Failed ends a reconcile with an error: its reads join the key's references, because it may have
// ended before it came to the others.
func (r *Recorder[K]) Failed() {
	r.store.mu.Lock()
	defer r.store.mu.Unlock()
	r.ended = true
}
