package view

import (
	"slices"

	"github.com/hookloop/hookloop/engine/object"
)

// Index is a secondary index: it finds the objects of a resource by values that a function returns
// for each object. A Store holds the index for each AddIndex, and View.By reads it. One Index may
// serve several resources and several users. It is immutable and safe for concurrent use.
type Index struct {
	name   string
	values func(*object.Object) []string
}

// NewIndex returns an index with a name for messages. The result of values must depend on the
// object alone: it is called when the object enters a Store, and again when it leaves. It is called
// with the Store locked, so it must not read the Store.
func NewIndex(name string, values func(*object.Object) []string) *Index {
	return &Index{name: name, values: values}
}

// Name returns the name.
func (i *Index) Name() string { return i.name }

// Values returns the values of an object.
func (i *Index) Values(o *object.Object) []string { return i.values(o) }

// By returns the objects for which an index has a value, in the order of namespace and name. If the
// Store does not hold the index, By looks at all objects: the result is the same.
func (v View) By(i *Index, value string) List {
	return List{resource: v.store.resource, objects: v.store.by(i, value), sorted: true, known: true}
}

// indexed are the objects of a Store by the values of one index.
type indexed struct {
	users  int
	values map[string]*ownedSet
}

// AddIndex makes the Store hold an index until release is called. An index that is added several
// times is held once, until the last release. The objects that are present are indexed before
// AddIndex returns.
func (s *Store) AddIndex(i *Index) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.indexes[i]
	if x == nil {
		x = &indexed{values: map[string]*ownedSet{}}
		for o := range s.all.all() {
			x.put(i, idOf(o), o)
		}
		if s.indexes == nil {
			s.indexes = map[*Index]*indexed{}
		}
		s.indexes[i] = x
	}
	x.users++
	released := false
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if released {
			return
		}
		released = true
		x.users--
		if x.users == 0 {
			delete(s.indexes, i)
		}
	}
}

// by returns the objects for which an index has a value, in order.
func (s *Store) by(i *Index, value string) []*object.Object {
	s.mu.RLock()
	x := s.indexes[i]
	if x == nil {
		defer s.mu.RUnlock()
		return s.scan(i, value)
	}
	if b := x.values[value]; b == nil || b.fresh() {
		defer s.mu.RUnlock()
		return b.list()
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	x = s.indexes[i]
	if x == nil { // released meanwhile
		return s.scan(i, value)
	}
	return x.values[value].list()
}

// scan is by without the index.
func (s *Store) scan(i *Index, value string) []*object.Object {
	var found []*object.Object
	for o := range s.all.all() {
		if slices.Contains(i.values(o), value) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *object.Object) int { return compareIDs(idOf(a), idOf(b)) })
	return found
}

// put adds an object to the index.
func (x *indexed) put(i *Index, key id, o *object.Object) {
	for _, value := range i.values(o) {
		b := x.values[value]
		if b == nil {
			b = &ownedSet{}
			x.values[value] = b
		}
		b.set(key, o)
	}
}

// drop removes an object from the index.
func (x *indexed) drop(i *Index, key id, o *object.Object) {
	for _, value := range i.values(o) {
		b := x.values[value]
		if b == nil { // the function has returned the value twice
			continue
		}
		b.set(key, nil)
		if b.empty() {
			delete(x.values, value)
		}
	}
}
