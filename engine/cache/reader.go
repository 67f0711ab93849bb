package cache

import (
	"strconv"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Reader is the cache's read-only face. A resource that is not watched has no objects. What it returns must not be changed.
type Reader interface {
	// Get returns one object, or nil.
	Get(r object.Resource, namespace, name string) *object.Object
	// OwnedBy lists the objects whose controller reference names owner, in the order of namespace and name.
	OwnedBy(r object.Resource, owner types.UID) []*object.Object
	// Orphans lists the objects of a namespace ("" for all) without a controller reference, in no order.
	Orphans(r object.Resource, namespace string) []*object.Object
	// List lists the objects of a namespace ("" for all), in no order.
	List(r object.Resource, namespace string) []*object.Object
	// Passed says whether the store shows the state at resourceVersion, or a later one. Resource versions are compared as numbers (KEP-5504);
	// one that is no number has never passed.
	Passed(r object.Resource, resourceVersion string) bool
}

// Reader returns the read-only face.
func (c *Cache) Reader() Reader { return reader{c} }

type reader struct{ cache *Cache }

// store finds a resource's objects; an empty store where it is not watched.
func (r reader) store(res object.Resource) *store {
	r.cache.mu.RLock()
	defer r.cache.mu.RUnlock()
	if i, ok := r.cache.informers[res]; ok {
		return i.store
	}
	return nothing
}

var nothing = newStore(object.Resource{})

func (r reader) Get(res object.Resource, namespace, name string) *object.Object {
	return r.store(res).get(id{namespace, name})
}

func (r reader) OwnedBy(res object.Resource, owner types.UID) []*object.Object {
	return r.store(res).ownedBy(owner)
}

func (r reader) Orphans(res object.Resource, namespace string) []*object.Object {
	return r.store(res).orphans(namespace)
}

func (r reader) List(res object.Resource, namespace string) []*object.Object {
	return r.store(res).list(namespace)
}

func (r reader) Passed(res object.Resource, resourceVersion string) bool {
	v, err := strconv.ParseUint(resourceVersion, 10, 64)
	return err == nil && r.store(res).seen() >= v
}

// version is a resource version as a number; 0 for text that is none.
func version(resourceVersion string) uint64 {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
