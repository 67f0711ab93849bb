package shape

import (
	"slices"

	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Owned reads the objects of the declared kinds that a parent owns by controller reference and that
// belong accepts, without adoption and release. It is for kinds that mark their objects, because
// others may own objects of the parent, too. The error is a *view.Error if the objects of a kind
// are not known.
func Owned(
	in Input, parent *object.Object, kinds []plan.ChildKind, belong func(*object.Object) bool,
) (view.Set, error) {
	lists := make([]view.List, len(kinds))
	for i, kind := range kinds {
		v, err := in.Reader.View(kind.Resource)
		if err != nil {
			return view.Set{}, err
		}
		lists[i] = v.OwnedBy(view.OwnerOf(parent)).Where(belong)
	}
	return view.SetOf(lists...), nil
}

// OwnedSnapshot holds the objects that a parent owned when they were last classified, so that the
// next sync classifies only those that are new or changed. The zero value is empty. A snapshot
// belongs to one sync at a time.
//
// Invariant: the parent keeps each object of owned, by the selector of that name.
type OwnedSnapshot struct {
	parent   types.UID
	selector string
	// owned is one list for each declared kind, in the order of their declaration.
	owned []view.List
}

// added returns the objects of now that s does not have: all of them if s was taken of another
// parent of the name, or by another selector.
func (s *OwnedSnapshot) added(now OwnedSnapshot) []*object.Object {
	var added []*object.Object
	if s == nil || s.parent != now.parent || s.selector != now.selector || len(s.owned) != len(now.owned) {
		for _, list := range now.owned {
			added = slices.AppendSeq(added, list.All())
		}
		return added
	}
	for i, list := range now.owned {
		added = append(added, view.Added(s.owned[i], list)...)
	}
	return added
}

// Has reports whether s has an object in a version.
func (s *OwnedSnapshot) Has(ref object.Ref, resourceVersion string) bool {
	for _, list := range s.owned {
		if list.Resource().GVK == ref.GVK {
			o := list.Get(ref.Namespace, ref.Name)
			return o != nil && o.ResourceVersion() == resourceVersion
		}
	}
	return false
}

// Bytes returns the approximate memory of the lists. As a rule the cache has the same lists.
func (s *OwnedSnapshot) Bytes() int {
	n := len(s.selector)
	for _, list := range s.owned {
		n += pointerBytes * list.Len()
	}
	return n
}

// pointerBytes is the memory of an object in a list.
const pointerBytes = 8

// replace makes s hold what now holds; nil holds nothing.
func (s *OwnedSnapshot) replace(now OwnedSnapshot) {
	if s != nil {
		*s = now
	}
}
