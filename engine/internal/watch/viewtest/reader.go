// Package viewtest fills views for tests: a Reader of objects that a test lists, and Sets that are
// complete.
//
// It reads through the real Stores and shares their lists, so that a test fails if the code under
// test writes to what it has read.
package viewtest

import (
	"slices"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Reader is a view.Reader of fixed objects. Every resource is known, except those of Broken.
type Reader struct {
	Objects []*object.Object
	// Broken are the errors of resources that cannot be read.
	Broken map[object.Resource]error

	stores map[object.Resource]*view.Store
}

var _ view.Reader = (*Reader)(nil)

// NewReader makes a Reader.
func NewReader(objects ...*object.Object) *Reader { return &Reader{Objects: objects} }

// View implements view.Reader. Of each resource it is always the same Store that is read.
func (r *Reader) View(resource object.Resource) (view.View, error) {
	if err := r.Broken[resource]; err != nil {
		return view.View{}, err
	}
	if r.stores == nil {
		r.stores = map[object.Resource]*view.Store{}
	}
	if r.stores[resource] == nil {
		r.stores[resource] = store(resource, r.Objects)
	}
	return r.stores[resource].View()
}

// Break has a resource fail to be read from now on, in a state.
func (r *Reader) Break(resource object.Resource, state view.State) {
	if r.Broken == nil {
		r.Broken = map[object.Resource]error{}
	}
	r.Broken[resource] = &view.Error{Resource: resource, State: state}
}

// store holds those of the objects that are of a resource's kind.
func store(r object.Resource, objects []*object.Object) *view.Store {
	s := view.NewStore(r)
	others := func(o *object.Object) bool { return o.GVK() != r.GVK }
	s.Replace(slices.DeleteFunc(slices.Clone(objects), others), "1")
	for _, o := range objects { // the view is up to date
		s.Advance(o.ResourceVersion())
	}
	return s
}

// List is a known list of the objects of a resource's kind.
func List(r object.Resource, objects ...*object.Object) view.List {
	v, err := store(r, objects).View()
	if err != nil {
		panic(err) // it has just been filled
	}
	return v.List("")
}

// Set is a set of objects that is complete for the kinds of resources.
func Set(resources []object.Resource, objects ...*object.Object) view.Set {
	var lists []view.List
	for _, r := range resources {
		lists = append(lists, List(r, objects...))
	}
	return view.SetOf(lists...)
}
