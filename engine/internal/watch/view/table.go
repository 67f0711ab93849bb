package view

import (
	"hash/maphash"
	"iter"

	"github.com/hookloop/hookloop/engine/object"
)

// table is a set of objects, found by namespace and name. A map would hold the names a second time,
// which is more than the rest of an object's place in the Store. The zero value is empty.
//
// Invariant: the places from an object's own one (home) up to the object are taken.
type table struct {
	places []*object.Object // a power of two, at most three quarters of them taken
	taken  int
}

// minPlaces is the size of the smallest table that is not empty.
const minPlaces = 8

var tableSeed = maphash.MakeSeed()

// home returns the place of a name in a table without others.
func (t *table) home(key id) int {
	hash := maphash.String(tableSeed, key.name) ^ 31*maphash.String(tableSeed, key.namespace)
	return int(hash & uint64(len(t.places)-1)) //nolint:gosec // less than the length
}

// find returns the place of an object, or the free one for it. The table must have a free one.
func (t *table) find(key id) int {
	at := t.home(key)
	for o := t.places[at]; o != nil && (o.Name() != key.name || o.Namespace() != key.namespace); o = t.places[at] {
		at = t.next(at)
	}
	return at
}

func (t *table) next(at int) int { return (at + 1) & (len(t.places) - 1) }

// get returns an object, or nil.
func (t *table) get(key id) *object.Object {
	if t.taken == 0 {
		return nil
	}
	return t.places[t.find(key)]
}

// put adds an object, in place of one of its name.
func (t *table) put(o *object.Object) {
	if 4*(t.taken+1) > 3*len(t.places) {
		t.resize(max(minPlaces, 2*len(t.places)))
	}
	at := t.find(idOf(o))
	if t.places[at] == nil {
		t.taken++
	}
	t.places[at] = o
}

// remove removes an object, and moves those behind it that would no longer be found.
func (t *table) remove(key id) {
	if t.get(key) == nil {
		return
	}
	t.taken--
	free := t.find(key)
	for at := t.next(free); t.places[at] != nil; at = t.next(at) {
		distance := func(to int) int { return (to - t.home(idOf(t.places[at]))) & (len(t.places) - 1) }
		if distance(free) < distance(at) { // free is on its way from home
			t.places[free], free = t.places[at], at
		}
	}
	t.places[free] = nil
	if len(t.places) > minPlaces && 8*t.taken < len(t.places) {
		t.resize(max(minPlaces, len(t.places)/4))
	}
}

func (t *table) resize(places int) {
	before := t.places
	t.places = make([]*object.Object, places)
	for _, o := range before {
		if o != nil {
			t.places[t.find(idOf(o))] = o
		}
	}
}

// all yields the objects in no order. The table must not change meanwhile.
func (t *table) all() iter.Seq[*object.Object] {
	return func(yield func(*object.Object) bool) {
		for _, o := range t.places {
			if o != nil && !yield(o) {
				return
			}
		}
	}
}
