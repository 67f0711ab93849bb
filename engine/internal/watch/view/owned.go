package view

import (
	"cmp"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
)

// ownedSet is the objects of one owner. It keeps a list of them in the order of their names, for
// readers, which is not changed once it is given away. A set of up to maxSmall objects, as most
// owners have, is that list alone: each change copies it. A larger one also has its members by
// name: a change then costs a copy of the list when it is read next, not a sort.
type ownedSet struct {
	sorted []*object.Object
	// members is nil for a small set.
	members group
	changed map[id]struct{} // since sorted was made
	// unsorted reports that sorted and changed were dropped after too many changes; the next read
	// of the list makes them again.
	unsorted bool
}

const (
	maxSmall = 16
	// maxChanged is the number of changes, beyond the number of members, that are kept for a list
	// without readers.
	maxChanged = 64
)

func (f *ownedSet) set(key id, o *object.Object) {
	if f.members == nil {
		next := append(make([]*object.Object, 0, len(f.sorted)+1), f.sorted...)
		f.sorted = place(next, key, o)
		if len(f.sorted) > maxSmall {
			f.grow()
		}
		return
	}
	if o == nil {
		delete(f.members, key)
	} else {
		f.members[key] = o
	}
	if f.unsorted {
		return
	}
	f.changed[key] = struct{}{}
	if len(f.changed) > len(f.members)+maxChanged {
		f.sorted = nil
		f.changed = map[id]struct{}{}
		f.unsorted = true
	}
}

// grow makes a small set a larger one.
func (f *ownedSet) grow() {
	f.members = make(group, len(f.sorted))
	f.changed = map[id]struct{}{}
	for _, o := range f.sorted {
		f.members[idOf(o)] = o
	}
}

// empty reports whether there are no members.
func (f *ownedSet) empty() bool {
	return len(f.members) == 0 && (f.members != nil || len(f.sorted) == 0)
}

// list is the members in the order of namespace and name. The caller holds the store's lock, and
// that for writing where fresh is false. A nil set has none.
func (f *ownedSet) list() []*object.Object {
	switch {
	case f == nil:
		return nil
	case f.fresh():
		return f.sorted
	}
	if f.unsorted || len(f.changed) > len(f.members)/8 {
		f.sorted = values(make([]*object.Object, 0, len(f.members)), f.members)
		slices.SortFunc(f.sorted, func(a, b *object.Object) int { return compareIDs(idOf(a), idOf(b)) })
	} else {
		f.patch()
	}
	clear(f.changed)
	f.unsorted = false
	return f.sorted
}

// sortedOrNil is the list where fresh holds; nil for no set.
func (f *ownedSet) sortedOrNil() []*object.Object {
	if f == nil {
		return nil
	}
	return f.sorted
}

// fresh reports whether list only reads.
func (f *ownedSet) fresh() bool { return len(f.changed) == 0 && !f.unsorted }

// patch takes a few changes into a copy of the list.
func (f *ownedSet) patch() {
	next := append(make([]*object.Object, 0, len(f.sorted)+len(f.changed)), f.sorted...)
	for key := range f.changed {
		next = place(next, key, f.members[key])
	}
	f.sorted = next
}

// place puts an object into a sorted list, or takes it out if o is nil. It changes the list.
func place(sorted []*object.Object, key id, o *object.Object) []*object.Object {
	at, found := slices.BinarySearchFunc(sorted, key,
		func(o *object.Object, key id) int { return compareIDs(idOf(o), key) })
	switch {
	case o == nil && found:
		return slices.Delete(sorted, at, at+1)
	case o != nil && found:
		sorted[at] = o
	case o != nil:
		return slices.Insert(sorted, at, o)
	}
	return sorted
}

func compareIDs(a, b id) int {
	return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
}
