package memapi

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// stored is one state of an object. It never changes.
type stored struct {
	object  *unstructured.Unstructured
	version uint64
	// raw is the object as JSON, in the version in which it was written.
	raw        []byte
	collection *collection
}

func (o *stored) key() key { return key{o.object.GetNamespace(), o.object.GetName()} }

// key finds an object in its collection.
type key struct{ namespace, name string }

func (k key) compare(other key) int {
	return cmp.Or(cmp.Compare(k.namespace, other.namespace), cmp.Compare(k.name, other.name))
}

// collection holds the objects of a resource, in all of its versions, and its last events.
type collection struct {
	name    schema.GroupResource
	objects map[key]*stored
	// preferred is the version in which the garbage collector and its like work.
	preferred *resource

	// events are the last ones; the first of them has the number first. Those up to the version
	// forgotten are gone.
	events    []event
	first     int
	forgotten uint64
	latest    uint64
	watchers  map[*watcher]struct{}
	// held reports that no events are delivered.
	held bool
	// filled reports that the objects of the source are stored.
	filled bool
}

// event is one change of an object. Old and now are nil for an object that did not, or does not
// exist.
type event struct {
	version  uint64
	old, now *stored
}

func newCollection(name schema.GroupResource) *collection {
	return &collection{name: name, objects: map[key]*stored{}, watchers: map[*watcher]struct{}{}}
}

// keys returns the sorted keys of a set of objects, of one namespace unless it is empty.
func keys(objects map[key]*stored, namespace string) []key {
	found := make([]key, 0, len(objects))
	for k := range objects {
		if namespace == "" || k.namespace == namespace {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, key.compare)
	return found
}

// at returns the objects as they were at a resourceVersion; false if the events since then are
// gone.
func (c *collection) at(version uint64) (map[key]*stored, bool) {
	if version < c.forgotten {
		return nil, false
	}
	if version >= c.latest {
		return c.objects, true
	}
	past := make(map[key]*stored, len(c.objects))
	maps.Copy(past, c.objects)
	for _, e := range slices.Backward(c.events) {
		if e.version <= version {
			break
		}
		if e.now != nil {
			delete(past, e.now.key())
		}
		if e.old != nil {
			past[e.old.key()] = e.old
		}
	}
	return past, true
}

// put stores a new state of an object, which the server owns from then on. Old is nil for a new
// object. The result has the next resourceVersion.
func (s *Server) put(c *collection, old *stored, object *unstructured.Unstructured) (*stored, error) {
	s.version++
	object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	raw, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	now := &stored{object: object, version: s.version, raw: raw, collection: c}
	c.objects[now.key()] = now
	s.track(old, now)
	s.record(c, event{s.version, old, now})
	return now, nil
}

// remove removes an object. The event has its last state, with the next resourceVersion.
func (s *Server) remove(old *stored) *stored {
	s.version++
	delete(old.collection.objects, old.key())
	s.track(old, nil)
	last := &stored{object: old.object.DeepCopy(), version: s.version, collection: old.collection}
	last.object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	s.record(old.collection, event{s.version, old, nil})
	return last
}

// record appends an event and drops the oldest ones.
func (s *Server) record(c *collection, e event) {
	c.events = append(c.events, e)
	c.latest = e.version
	if surplus := len(c.events) - s.options.History; surplus > 0 {
		c.forget(surplus)
	}
	c.wake()
}

// forget drops the n oldest events.
func (c *collection) forget(n int) {
	if n == 0 {
		return
	}
	c.forgotten = c.events[n-1].version
	c.first += n
	c.events = slices.Delete(c.events, 0, n)
}

// track keeps the indexes by UID and owner, and adds a task for the garbage collector.
func (s *Server) track(old, now *stored) {
	if old != nil {
		for _, o := range old.object.GetOwnerReferences() {
			delete(s.dependents[o.UID], old.object.GetUID())
			if len(s.dependents[o.UID]) == 0 {
				delete(s.dependents, o.UID)
			}
		}
		delete(s.objects, old.object.GetUID())
	}
	if now != nil {
		uid := now.object.GetUID()
		s.objects[uid] = now
		for _, o := range now.object.GetOwnerReferences() {
			if s.dependents[o.UID] == nil {
				s.dependents[o.UID] = map[types.UID]struct{}{}
			}
			s.dependents[o.UID][uid] = struct{}{}
		}
	}
	s.garbage = append(s.garbage, task{old: old, now: now})
}
