package cache

import (
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	clientcache "k8s.io/client-go/tools/cache"
)

// EventType is the kind of an Event.
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
	// Initial reports that the object was there when the subscription began.
	Initial bool
}

// store takes what the reflector brings into a view.Store, and delivers the changes to subscribers.
type store struct {
	resource object.Resource
	objects  *view.Store
	// primed is closed when the first list is in.
	primed chan struct{}
	once   sync.Once
	// health is cleared by whatever shows that the list or the watch works.
	health *health
	// progress is woken after each change of the view or of its health.
	progress progress

	// order makes changes and their delivery one step: it is held while subscribers are called, and
	// guards subscribers.
	order       sync.Mutex
	subscribers map[*func(Event)]struct{}
}

var (
	_ clientcache.ReflectorStore         = (*store)(nil)
	_ clientcache.ResourceVersionUpdater = (*store)(nil)
)

func newStore(r object.Resource, h *health) *store {
	return &store{
		resource:    r,
		objects:     view.NewStore(r),
		primed:      make(chan struct{}),
		health:      h,
		subscribers: map[*func(Event)]struct{}{},
	}
}

// Add implements the reflector's store.
func (s *store) Add(obj any) error { return s.step(obj, s.objects.Put) }

// Update implements the reflector's store.
func (s *store) Update(obj any) error { return s.step(obj, s.objects.Put) }

// Delete implements the reflector's store.
func (s *store) Delete(obj any) error { return s.step(obj, s.objects.Delete) }

// Resync implements the reflector's store; the controllers have their own resync.
func (s *store) Resync() error { return nil }

// UpdateResourceVersion takes the position of the watch over. The reflector calls it after each
// event, bookmarks included.
func (s *store) UpdateResourceVersion(resourceVersion string) {
	s.objects.Advance(resourceVersion)
	s.health.good()
	s.progress.wake()
}

// step takes one event of the watch into account.
func (s *store) step(obj any, apply func(*object.Object) view.Change) error {
	o, ok := obj.(*object.Object)
	if !ok {
		return s.notAnObject(obj)
	}
	defer s.progress.wake()
	s.order.Lock()
	defer s.order.Unlock()
	if c := apply(o); c.Old != nil || c.New != nil {
		s.deliver(c)
	}
	return nil
}

func (s *store) notAnObject(obj any) error {
	return fmt.Errorf("%s: got %T, expected an object", s.resource, obj)
}

// Replace implements the reflector's store: a new list, after the first start or after a watch was
// lost.
func (s *store) Replace(items []any, resourceVersion string) error {
	objects := make([]*object.Object, len(items))
	for i, item := range items {
		o, ok := item.(*object.Object)
		if !ok {
			return s.notAnObject(item)
		}
		objects[i] = o
	}
	defer s.progress.wake()
	s.order.Lock()
	defer s.order.Unlock()
	changes := s.objects.Replace(objects, resourceVersion)
	s.health.good()
	s.once.Do(func() { close(s.primed) })
	for _, c := range changes {
		s.deliver(c)
	}
	return nil
}

func (s *store) deliver(c view.Change) {
	e := Event{Type: Updated, Resource: s.resource, Old: c.Old, New: c.New}
	switch {
	case c.Old == nil:
		e.Type = Added
	case c.New == nil:
		e.Type = Deleted
	}
	for f := range s.subscribers {
		(*f)(e)
	}
}

// subscribe delivers all objects that v, a view of the store, shows, then every change.
func (s *store) subscribe(v view.View, f func(Event)) (cancel func()) {
	s.order.Lock()
	defer s.order.Unlock()
	for o := range v.List("").All() {
		f(Event{Type: Added, Resource: s.resource, New: o, Initial: true})
	}
	s.subscribers[&f] = struct{}{}
	return func() {
		s.order.Lock()
		defer s.order.Unlock()
		delete(s.subscribers, &f)
	}
}

// isPrimed reports whether the first list is in.
func (s *store) isPrimed() bool {
	select {
	case <-s.primed:
		return true
	default:
		return false
	}
}
