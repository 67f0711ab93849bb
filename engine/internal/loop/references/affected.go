package references

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Affected returns the keys with a reference to an object's old or current state, in no order, each
// once. old is nil for an added object, current for a deleted one. Its cost depends on the keys
// that it returns and on the object's labels and index values, not on the number of keys.
//
// It must be called after views show the event, so that a key which records a read meanwhile reads
// the current state.
func (s *Store[K]) Affected(of object.Resource, old, current *object.Object) []K {
	states := statesOf(old, current)
	values := s.indexValues(of, states)
	s.mu.RLock()
	defer s.mu.RUnlock()
	r := s.resources[of]
	if r == nil {
		return nil
	}
	found := map[K]struct{}{}
	add := func(ref *reference[K]) {
		if ref != nil {
			ref.keys.all(func(d *dependent[K]) { found[d.key] = struct{}{} })
		}
	}
	add(r.references[target{kind: whole}])
	for _, o := range states {
		r.lookup(o, add)
	}
	for t := range values {
		add(r.references[t])
	}
	return slices.Collect(maps.Keys(found))
}

func statesOf(old, current *object.Object) []*object.Object {
	var states []*object.Object
	for _, o := range []*object.Object{old, current} {
		if o != nil {
			states = append(states, o)
		}
	}
	return states
}

// lookup finds the references to one state of an object, except those by index.
func (r *resource[K]) lookup(o *object.Object, add func(*reference[K])) {
	add(r.references[target{kind: byName, namespace: o.Namespace(), value: o.Name()}])
	if owner := o.ControllerRef(); owner != nil {
		uid := string(owner.UID)
		add(r.references[target{kind: owned, namespace: o.Namespace(), value: uid}])
		add(r.references[target{kind: owned, value: uid}]) // of a cluster-scoped owner
	}
	for _, ref := range r.selectors.Match(o.Namespace(), o.Labels()) {
		add(ref)
	}
}

// indexValues returns the targets of an object's states by the indexes that references use. The
// functions of the indexes are called without the lock.
func (s *Store[K]) indexValues(of object.Resource, states []*object.Object) map[target]struct{} {
	s.mu.RLock()
	var indexes []*view.Index
	if r := s.resources[of]; r != nil {
		indexes = slices.Collect(maps.Keys(r.indexes))
	}
	s.mu.RUnlock()
	values := map[target]struct{}{}
	for _, i := range indexes {
		for _, o := range states {
			for _, value := range i.Values(o) {
				values[target{kind: indexed, index: i, value: value}] = struct{}{}
			}
		}
	}
	return values
}

// Keys returns the keys with references, in no order.
func (s *Store[K]) Keys() []K {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.keys))
}
