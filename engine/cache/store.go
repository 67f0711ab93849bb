package cache

import (
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
	clientcache "k8s.io/client-go/tools/cache"
)

// EventType says what happened to an object.
type EventType string

// The event types.
const (
	Added   EventType = "added"
	Updated EventType = "updated"
	Deleted EventType = "deleted"
)

// Event is one change of one object. Old is nil for Added, New for Deleted.
type Event struct {
	Type     EventType
	Resource object.Resource
	Old, New *object.Object
	// Initial says that the object was there when the subscription began.
	Initial bool
}

// id names an object within its resource.
type id struct{ namespace, name string }

func idOf(o *object.Object) id { return id{o.Namespace(), o.Name()} }

// group is a set of objects.
type group map[id]*object.Object

// store holds one resource's objects. The reflector writes it.
type store struct {
	resource object.Resource
	// primed is closed when the first list is in.
	primed chan struct{}

	// order makes changes and their delivery one step: it is held while subscribers are called, and guards subscribers.
	order       sync.Mutex
	subscribers map[*func(Event)]struct{}

	mu sync.RWMutex // guards what follows
	// Invariant: every object of all is in exactly one of owned and free.
	all   group
	owned map[types.UID]*family
	free  map[string]group // by namespace
	bytes int
	rv    uint64
	isSet bool
}

var (
	_ clientcache.ReflectorStore         = (*store)(nil)
	_ clientcache.ResourceVersionUpdater = (*store)(nil)
)

func newStore(r object.Resource) *store {
	return &store{
		resource: r, primed: make(chan struct{}), subscribers: map[*func(Event)]struct{}{},
		all: group{}, owned: map[types.UID]*family{}, free: map[string]group{},
	}
}

// Add implements the reflector's store.
func (s *store) Add(obj any) error { return s.put(obj) }

// Update implements the reflector's store.
func (s *store) Update(obj any) error { return s.put(obj) }

// Resync implements the reflector's store; the controllers have their own resync.
func (s *store) Resync() error { return nil }

// UpdateResourceVersion notes how far the watch has come, bookmarks included.
func (s *store) UpdateResourceVersion(resourceVersion string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rv = max(s.rv, version(resourceVersion))
}

func (s *store) put(obj any) error {
	o, ok := obj.(*object.Object)
	if !ok {
		return s.noObject(obj)
	}
	s.step(o, o)
	return nil
}

// Delete implements the reflector's store.
func (s *store) Delete(obj any) error {
	o, ok := obj.(*object.Object)
	if !ok {
		return s.noObject(obj)
	}
	s.step(o, nil)
	return nil
}

func (s *store) noObject(obj any) error {
	return fmt.Errorf("%s: got %T, expected an object", s.resource, obj)
}

// step takes one event into account: current, which may be nil, is in o's place from now on.
func (s *store) step(o, current *object.Object) {
	s.order.Lock()
	defer s.order.Unlock()
	s.mu.Lock()
	s.rv = max(s.rv, version(o.ResourceVersion()))
	old := s.all[idOf(o)]
	s.replace(old, current)
	s.mu.Unlock()
	if old != nil || current != nil {
		s.deliver(change(s.resource, old, current))
	}
}

// Replace implements the reflector's store: a new list, after the first start or after a watch was lost.
func (s *store) Replace(items []any, resourceVersion string) error {
	next := make(group, len(items))
	for _, item := range items {
		o, ok := item.(*object.Object)
		if !ok {
			return s.noObject(item)
		}
		next[idOf(o)] = o
	}
	s.order.Lock()
	defer s.order.Unlock()
	for _, e := range s.swap(next, resourceVersion) {
		s.deliver(e)
	}
	return nil
}

// swap puts a whole new state in and returns the events that lead to it.
func (s *store) swap(next group, resourceVersion string) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []Event
	for key, old := range s.all {
		if next[key] == nil {
			s.replace(old, nil)
			events = append(events, change(s.resource, old, nil))
		}
	}
	for key, o := range next {
		old := s.all[key]
		if old != nil && old.UID() == o.UID() && old.ResourceVersion() == o.ResourceVersion() {
			continue
		}
		s.replace(old, o)
		events = append(events, change(s.resource, old, o))
	}
	s.rv = max(s.rv, version(resourceVersion))
	if !s.isSet {
		s.isSet = true
		close(s.primed)
	}
	return events
}

// change is the event that leads from old to current.
func change(r object.Resource, old, current *object.Object) Event {
	e := Event{Type: Updated, Resource: r, Old: old, New: current}
	switch {
	case old == nil:
		e.Type = Added
	case current == nil:
		e.Type = Deleted
	}
	return e
}

// replace puts current in old's place, in all indexes. Both may be nil.
func (s *store) replace(old, current *object.Object) {
	if old != nil {
		key := idOf(old)
		delete(s.all, key)
		s.bytes -= old.Size()
		if ref := old.ControllerRef(); ref != nil {
			s.own(ref.UID, key, nil)
		} else {
			remove(s.free, old.Namespace(), key)
		}
	}
	if current != nil {
		key := idOf(current)
		s.all[key] = current
		s.bytes += current.Size()
		if ref := current.ControllerRef(); ref != nil {
			s.own(ref.UID, key, current)
		} else {
			insert(s.free, current.Namespace(), key, current)
		}
	}
}

// own puts an object into its owner's family, or takes it out.
func (s *store) own(owner types.UID, key id, o *object.Object) {
	f := s.owned[owner]
	if f == nil {
		f = &family{members: group{}, changed: map[id]struct{}{}}
		s.owned[owner] = f
	}
	if f.set(key, o); len(f.members) == 0 {
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

func (s *store) deliver(e Event) {
	for f := range s.subscribers {
		(*f)(e)
	}
}

func (s *store) subscribe(f func(Event)) (cancel func()) {
	s.order.Lock()
	defer s.order.Unlock()
	for _, o := range s.list("") {
		f(Event{Type: Added, Resource: s.resource, New: o, Initial: true})
	}
	s.subscribers[&f] = struct{}{}
	return func() {
		s.order.Lock()
		defer s.order.Unlock()
		delete(s.subscribers, &f)
	}
}

func (s *store) get(key id) *object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.all[key]
}

func (s *store) ownedBy(owner types.UID) []*object.Object {
	s.mu.RLock()
	f := s.owned[owner]
	if f == nil || f.fresh() {
		defer s.mu.RUnlock()
		return f.sortedOrNil()
	}
	s.mu.RUnlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if f = s.owned[owner]; f == nil {
		return nil
	}
	return f.list()
}

func (s *store) orphans(namespace string) []*object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if namespace != "" {
		return values(nil, s.free[namespace])
	}
	var all []*object.Object
	for _, g := range s.free {
		all = values(all, g)
	}
	return all
}

func (s *store) list(namespace string) []*object.Object {
	s.mu.RLock()
	defer s.mu.RUnlock()
	all := make([]*object.Object, 0, len(s.all))
	for key, o := range s.all {
		if namespace == "" || key.namespace == namespace {
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

func (s *store) seen() uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.rv
}

func (s *store) size() (objects, bytes int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.all), s.bytes
}
