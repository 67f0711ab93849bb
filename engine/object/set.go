package object

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is an immutable collection of objects, found by reference and listed by kind in the order of namespace and name. The
// zero value is the empty set.
type Set struct {
	byRef  map[Ref]*Object
	byKind map[schema.GroupVersionKind][]*Object
}

// NewSet collects objects. Of two with the same reference the later one stays.
func NewSet(objects ...*Object) Set {
	s := Set{byRef: make(map[Ref]*Object, len(objects)), byKind: map[schema.GroupVersionKind][]*Object{}}
	for _, o := range objects {
		s.byRef[o.Ref()] = o
	}
	for ref, o := range s.byRef {
		s.byKind[ref.GVK] = append(s.byKind[ref.GVK], o)
	}
	for _, list := range s.byKind {
		slices.SortFunc(list, func(a, b *Object) int {
			return cmp.Or(cmp.Compare(a.Namespace(), b.Namespace()), cmp.Compare(a.Name(), b.Name()))
		})
	}
	return s
}

// Get returns the object that ref names, or nil.
func (s Set) Get(ref Ref) *Object { return s.byRef[ref] }

// Of lists the objects of one kind, ordered by namespace and name. The caller must not change the slice.
func (s Set) Of(gvk schema.GroupVersionKind) []*Object { return s.byKind[gvk] }

// Len is the number of objects.
func (s Set) Len() int { return len(s.byRef) }

// With returns a set in which the given objects replace or join the present ones.
func (s Set) With(objects ...*Object) Set {
	if len(objects) == 0 {
		return s
	}
	all := make([]*Object, 0, len(s.byRef)+len(objects))
	for _, o := range s.byRef {
		all = append(all, o)
	}
	return NewSet(append(all, objects...)...)
}
