// Package view holds the observed objects of resources and reads them in a way that cannot mistake
// "unknown" for "empty".
//
// A Store is the objects of one resource with indexes by name, by owner and by the lack of one, and
// with the secondary indexes that its users add (Index). A View reads a Store, and only a Store
// that has been filled by a complete list gives one. A List is the result of such a read, a Set is
// Lists of several kinds; both know for which kinds they are complete, and their zero values are
// complete for none. Package plan refuses to plan from a Set that is not complete.
//
// The package is pure: no client, no context, no clock. Package cache fills Stores from the API
// server's lists and watches, and guards them by handles; package viewtest fills them for tests. A
// Store is safe for concurrent use.
package view

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader gives views of resources. The error is an *Error if the objects of the resource are not
// known.
type Reader interface {
	View(r object.Resource) (View, error)
}

// State is the reason why a resource cannot be read.
type State string

// The states.
const (
	// Unwatched is the state of a resource without a handle: no handle was acquired, or
	// it was released.
	Unwatched State = "Unwatched"
	// Filling is the state of a resource before its first list is in.
	Filling State = "Filling"
	// Stale is the state of a resource if its list or watch has failed for longer than a threshold.
	Stale State = "Stale"
)

// Error reports that the objects of a resource are not known.
type Error struct {
	Resource object.Resource
	State    State
	// Since is when the trouble began; zero unless State is Stale.
	Since time.Time
	// Err is the last failure of a list or a watch; nil without one.
	Err error
}

func (e *Error) Error() string {
	text := ""
	switch e.State {
	case Stale:
		text = fmt.Sprintf("the view of %s is stale since %s", e.Resource, e.Since.UTC().Format(time.RFC3339))
	case Filling:
		text = fmt.Sprintf("the objects of %s are not known yet", e.Resource)
	default:
		text = fmt.Sprintf("the objects of %s are not known: the resource is not watched", e.Resource)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the API server's answer.
func (e *Error) Unwrap() error { return e.Err }

// View reads the objects of one resource from a [Store]. Each call shows the store as it is then,
// so get a new View for each sync and do not keep it: it cannot tell you when the store becomes
// stale. The zero View panics.
type View struct{ store *Store }

// Resource is the resource that is read.
func (v View) Resource() object.Resource { return v.store.resource }

// Get returns one object, or nil if it does not exist.
func (v View) Get(namespace, name string) *object.Object { return v.store.get(id{namespace, name}) }

// Named lists the objects of a namespace that have one of the names.
func (v View) Named(namespace string, names ...string) List {
	l := List{resource: v.store.resource, known: true}
	for _, name := range names {
		if o := v.Get(namespace, name); o != nil {
			l.objects = append(l.objects, o)
		}
	}
	return l
}

// OwnedBy returns the objects that owner controls, sorted by namespace and name. An object of
// another namespace than a namespaced owner's is not among them, whatever its reference says.
func (v View) OwnedBy(owner Owner) List {
	return List{resource: v.store.resource, objects: v.store.ownedBy(owner), sorted: true, known: true}
}

// Orphans returns the objects of a namespace ("" for all) without a controller reference that a
// selector matches, in no order. Its cost depends on the number of objects with the rarest label
// that the selector requires, not on that of the namespace.
func (v View) Orphans(namespace string, selector labels.Selector) List {
	return List{resource: v.store.resource, objects: v.store.orphans(namespace, selector), known: true}
}

// Select returns the objects of a namespace ("" for all) that a selector matches, with and without
// a controller reference, in no order. Its cost depends on the number of objects with the rarest
// label that the selector requires, not on that of the namespace; from the first call on, the Store
// keeps an index for it.
func (v View) Select(namespace string, selector labels.Selector) List {
	return List{resource: v.store.resource, objects: v.store.selected(namespace, selector), known: true}
}

// List lists the objects of a namespace ("" for all), in no order.
func (v View) List(namespace string) List {
	return List{resource: v.store.resource, objects: v.store.list(namespace), known: true}
}

// AtLeast reports whether the view shows the state at resourceVersion, or a later one. Resource
// versions are compared as numbers (KEP-5504); AtLeast is false for one that is not a number.
func (v View) AtLeast(resourceVersion string) bool {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	return err == nil && v.store.seen() >= n
}

// List is objects of one resource: all that a read of a View selects, none missing. It is
// immutable. The zero List is unknown.
type List struct {
	resource object.Resource
	objects  []*object.Object
	sorted   bool
	known    bool
}

// Known reports whether the list comes from a View.
func (l List) Known() bool { return l.known }

// Resource is the resource of the objects; zero for an unknown List.
func (l List) Resource() object.Resource { return l.resource }

// Len is the number of objects.
func (l List) Len() int { return len(l.objects) }

// All yields the objects.
func (l List) All() iter.Seq[*object.Object] { return slices.Values(l.objects) }

// Get returns an object of the list, or nil if it has none of the name.
func (l List) Get(namespace, name string) *object.Object {
	key := id{namespace, name}
	if l.sorted {
		at, found := slices.BinarySearchFunc(l.objects, key,
			func(o *object.Object, key id) int { return compareIDs(idOf(o), key) })
		if !found {
			return nil
		}
		return l.objects[at]
	}
	at := slices.IndexFunc(l.objects, func(o *object.Object) bool { return idOf(o) == key })
	if at < 0 {
		return nil
	}
	return l.objects[at]
}

// Where returns the objects of the list that keep accepts.
func (l List) Where(keep func(*object.Object) bool) List {
	var kept []*object.Object
	for _, o := range l.objects {
		if keep(o) {
			kept = append(kept, o)
		}
	}
	l.objects = kept
	return l
}

// Within returns the objects of the list that owner can own by their namespace. Use it for indexes
// that contain the UID of an owner.
func (l List) Within(owner Owner) List {
	if owner.Namespace == "" {
		return l
	}
	return l.Where(func(o *object.Object) bool { return owner.Reaches(o.Namespace()) })
}

// With returns a list with further objects of the resource.
func (l List) With(more ...*object.Object) List {
	if len(more) > 0 {
		l.objects = slices.Concat(l.objects, more)
		l.sorted = false
	}
	return l
}

// Added returns the objects of now that before does not have. Both are in the order of namespace
// and name; objects are compared by identity.
func Added(before, now List) []*object.Object { return object.Added(before.objects, now.objects) }

// Set is objects of several kinds, with the kinds for which it is complete. It is immutable. The
// zero Set is complete for none.
type Set struct {
	object.Set
	known []schema.GroupVersionKind
}

// SetOf collects lists. The set is complete for the kinds of those that are known.
func SetOf(lists ...List) Set {
	var s Set
	ordered := true
	all := make([][]*object.Object, len(lists))
	for i, l := range lists {
		if l.known {
			s.known = append(s.known, l.resource.GVK)
		}
		ordered = ordered && l.sorted
		all[i] = l.objects
	}
	if ordered {
		s.Set = object.Collect(all...)
	} else {
		s.Set = object.NewSet(slices.Concat(all...)...)
	}
	return s
}

// Complete reports whether no object of a kind is missing.
func (s Set) Complete(gvk schema.GroupVersionKind) bool { return slices.Contains(s.known, gvk) }

// With returns a set in which the given objects replace or join the present ones. It is complete
// for the same kinds.
func (s Set) With(objects ...*object.Object) Set {
	s.Set = s.Set.With(objects...)
	return s
}
