package view

import (
	"slices"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Change is one change of one object. Old is nil for a new object, New for a deleted one.
type Change struct{ Old, New *object.Object }

// id names an object within its resource.
type id struct{ namespace, name string }

func idOf(o *object.Object) id { return id{o.Namespace(), o.Name()} }

// group is a set of objects.
type group map[id]*object.Object

// Store holds the objects of one resource.
type Store struct {
	resource object.Resource
	// filled is set by the first list.
	filled atomic.Bool

	mu sync.RWMutex // guards the fields below
	// Invariant: every object of all is in exactly one of owned and orphaned.
	all      table
	owned    map[types.UID]*dependents
	orphaned labelIndex
	// selectable has all objects; it is not made before its first read.
	selectable labelIndex
	// indexes are the secondary indexes that users have added; nil without one.
	indexes map[*Index]*indexed
	bytes   int
	rv      uint64
}

// NewStore makes a Store that knows no objects: it gives a View after the first Replace.
func NewStore(r object.Resource) *Store {
	return &Store{resource: r, owned: map[types.UID]*dependents{}, orphaned: newLabelIndex()}
}

// View reads the store. The error is an *Error until the first Replace.
func (s *Store) View() (View, error) {
	if !s.filled.Load() {
		return View{}, &Error{Resource: s.resource, State: Filling}
	}
	return View{s}, nil
}

// Put adds or replaces an object.
func (s *Store) Put(o *object.Object) Change { return s.step(o, o) }

// Delete removes an object; o is its last state.
func (s *Store) Delete(o *object.Object) Change { return s.step(o, nil) }

// step takes one event into account: current, which may be nil, is in o's place from now on.
func (s *Store) step(o, current *object.Object) Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv = max(s.rv, version(o.ResourceVersion()))
	old := s.all.get(idOf(o))
	s.replace(old, current)
	return Change{old, current}
}

// Advance notes that the store shows the state at resourceVersion.
func (s *Store) Advance(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv = max(s.rv, version(resourceVersion))
}

// version is a resource version as a number; 0 for text that is none.
func version(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Replace puts a complete list in, as of resourceVersion, and returns the changes that lead to it.
func (s *Store) Replace(objects []*object.Object, resourceVersion string) []Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	var changes []Change
	for _, old := range s.missing(objects) {
		s.replace(old, nil)
		changes = append(changes, Change{old, nil})
	}
	changes = slices.Grow(changes, len(objects)-s.all.taken)
	for _, o := range objects {
		old := s.all.get(idOf(o))
		if old != nil && old.UID() == o.UID() && old.ResourceVersion() == o.ResourceVersion() {
			continue
		}
		s.replace(old, o)
		changes = append(changes, Change{old, o})
	}
	s.rv = max(s.rv, version(resourceVersion))
	s.filled.Store(true)
	return changes
}

// missing returns the objects of the store that a list lacks. For the first list, which may be
// large, it takes no memory.
func (s *Store) missing(list []*object.Object) []*object.Object {
	if s.all.taken == 0 {
		return nil
	}
	listed := make(map[id]struct{}, len(list))
	for _, o := range list {
		listed[idOf(o)] = struct{}{}
	}
	var missing []*object.Object
	for old := range s.all.all() {
		if _, ok := listed[idOf(old)]; !ok {
			missing = append(missing, old)
		}
	}
	return missing
}

// replace puts current in old's place, in all indexes. Both may be nil.
func (s *Store) replace(old, current *object.Object) {
	if old != nil {
		key := idOf(old)
		if current == nil || idOf(current) != key {
			s.all.remove(key)
		}
		s.bytes -= old.Held()
		if ref := old.ControllerRef(); ref != nil {
			s.own(ref.UID, key, nil)
		} else {
			s.orphaned.remove(old)
		}
		if s.selectable.made() {
			s.selectable.remove(old)
		}
		for i, x := range s.indexes {
			x.drop(i, key, old)
		}
	}
	if current != nil {
		key := idOf(current)
		s.all.put(current)
		s.bytes += current.Held()
		if ref := current.ControllerRef(); ref != nil {
			s.own(ref.UID, key, current)
		} else {
			s.orphaned.add(current)
		}
		if s.selectable.made() {
			s.selectable.add(current)
		}
		for i, x := range s.indexes {
			x.put(i, key, current)
		}
	}
}

// own puts an object into its owner's set, or takes it out.
func (s *Store) own(owner types.UID, key id, o *object.Object) {
	d := s.owned[owner]
	if d == nil {
		d = &dependents{}
		s.owned[owner] = d
	}
	d.set(key, o)
	if d.all.empty() {
		delete(s.owned, owner)
	}
}

func insert(index map[string]group, at string, key id, o *object.Object) {
	if index[at] == nil {
		index[at] = group{}
	}
	index[at][key] = o
}

func remove(index map[string]group, at string, key id) {
	delete(index[at], key)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}

func (s *Store) get(key id) *object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all.get(key)
}

func (s *Store) ownedBy(owner Owner) []*object.Object {
	s.mu.RLock()
	f := s.owned[owner.UID].of(owner)
	if f == nil || f.fresh() {
		defer s.mu.RUnlock()
		return f.sortedOrNil()
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owned[owner.UID].of(owner).list()
}

func (s *Store) orphans(namespace string, selector labels.Selector) []*object.Object {
	return s.match(&s.orphaned, namespace, selector)
}

func (s *Store) selected(namespace string, selector labels.Selector) []*object.Object {
	s.mu.RLock()
	made := s.selectable.made()
	s.mu.RUnlock()
	if !made {
		s.makeSelectable()
	}
	return s.match(&s.selectable, namespace, selector)
}

func (s *Store) makeSelectable() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.selectable.made() {
		return
	}
	s.selectable = newLabelIndex()
	for o := range s.all.all() {
		s.selectable.add(o)
	}
}

// match returns the objects of an index that is made.
func (s *Store) match(x *labelIndex, namespace string, selector labels.Selector) []*object.Object {
	s.mu.RLock()
	if x.prepared(selector) {
		defer s.mu.RUnlock()
		return x.match(namespace, selector)
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	x.prepare(selector)
	return x.match(namespace, selector)
}

func (s *Store) list(namespace string) []*object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*object.Object, 0, s.all.taken)
	for o := range s.all.all() {
		if namespace == "" || o.Namespace() == namespace {
			all = append(all, o)
		}
	}
	return all
}

func values(list []*object.Object, g group) []*object.Object {
	for _, o := range g {
		list = append(list, o)
	}
	return list
}

func (s *Store) seen() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rv
}

// Size returns the number of objects and the size of what they keep of their JSON.
func (s *Store) Size() (objects, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all.taken, s.bytes
}
