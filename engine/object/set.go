package object

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is an immutable collection of objects, found by reference and listed by kind in the order of
// namespace and name. The zero value is the empty set.
type Set struct {
	kinds []ofKind
	size  int
}

// ofKind is the objects of one kind in the order of their names, each name once.
type ofKind struct {
	gvk     schema.GroupVersionKind
	objects []*Object
}

// NewSet collects objects. Of two with the same reference the later one stays. Objects that come in
// their order cost no sorting.
func NewSet(objects ...*Object) Set {
	var s Set
	for start := 0; start < len(objects); {
		gvk := objects[start].GVK()
		end := start + 1
		for end < len(objects) && objects[end].GVK() == gvk {
			end++
		}
		s.add(gvk, objects[start:end:end])
		start = end
	}
	for i := range s.kinds {
		s.kinds[i].arrange()
		s.size += len(s.kinds[i].objects)
	}
	return s
}

// Collect makes a set of lists, each of one kind and in the order of namespace and name, each name
// once. They are not copied.
func Collect(lists ...[]*Object) Set {
	var s Set
	for _, list := range lists {
		if len(list) > 0 {
			s.kinds = append(s.kinds, ofKind{list[0].GVK(), list})
			s.size += len(list)
		}
	}
	return s
}

// Added returns the objects of now that before does not have. Both are in the order of namespace
// and name; objects are compared by identity.
func Added(before, now []*Object) (added []*Object) {
	for _, o := range now {
		for len(before) > 0 && before[0] != o && compareNames(before[0], o) <= 0 {
			before = before[1:]
		}
		if len(before) > 0 && before[0] == o {
			before = before[1:]
			continue
		}
		added = append(added, o)
	}
	return added
}

// add takes objects of one kind in.
func (s *Set) add(gvk schema.GroupVersionKind, objects []*Object) {
	if k := s.find(gvk); k != nil {
		k.objects = append(k.objects, objects...)
		return
	}
	s.kinds = append(s.kinds, ofKind{gvk, objects})
}

func (s *Set) find(gvk schema.GroupVersionKind) *ofKind {
	for i := range s.kinds {
		if s.kinds[i].gvk == gvk {
			return &s.kinds[i]
		}
	}
	return nil
}

func compareNames(a, b *Object) int {
	return cmp.Or(cmp.Compare(a.Namespace(), b.Namespace()), cmp.Compare(a.Name(), b.Name()))
}

// arrange puts the objects in order.
func (k *ofKind) arrange() {
	for i := 1; i < len(k.objects); i++ {
		if compareNames(k.objects[i-1], k.objects[i]) >= 0 {
			k.sort()
			return
		}
	}
}

// sort works on a copy: the list may be someone else's.
func (k *ofKind) sort() {
	k.objects = slices.Clone(k.objects)
	slices.SortStableFunc(k.objects, compareNames)
	last := 0
	for _, o := range k.objects[1:] {
		if compareNames(k.objects[last], o) != 0 {
			last++
		}
		k.objects[last] = o
	}
	k.objects = k.objects[:last+1]
}

// Get returns the object that ref names, or nil.
func (s Set) Get(ref Ref) *Object {
	k := s.find(ref.GVK)
	if k == nil {
		return nil
	}
	at, found := slices.BinarySearchFunc(k.objects, ref, func(o *Object, ref Ref) int {
		return cmp.Or(cmp.Compare(o.Namespace(), ref.Namespace), cmp.Compare(o.Name(), ref.Name))
	})
	if !found {
		return nil
	}
	return k.objects[at]
}

// Of lists the objects of one kind, ordered by namespace and name. The caller must not change the
// slice; it can append to it.
func (s Set) Of(gvk schema.GroupVersionKind) []*Object {
	if k := s.find(gvk); k != nil {
		return slices.Clip(k.objects)
	}
	return nil
}

// Len is the number of objects.
func (s Set) Len() int { return s.size }

// With returns a set in which the given objects replace or join the present ones.
func (s Set) With(objects ...*Object) Set {
	if len(objects) == 0 {
		return s
	}
	all := make([]*Object, 0, s.size+len(objects))
	for _, k := range s.kinds {
		all = append(all, k.objects...)
	}
	return NewSet(append(all, objects...)...)
}

// Compare reports each object that is in one set and not in the other; an object that was replaced
// is reported once. Objects are compared by identity: it costs a comparison of pointers for each
// that is in both.
func Compare(before, now Set, differs func(Ref)) {
	for _, k := range before.kinds {
		compareObjects(k.objects, now.Of(k.gvk), differs)
	}
	for _, k := range now.kinds {
		if before.find(k.gvk) == nil {
			compareObjects(nil, k.objects, differs)
		}
	}
}

func compareObjects(before, now []*Object, differs func(Ref)) {
	for len(before) > 0 && len(now) > 0 {
		if before[0] == now[0] {
			before = before[1:]
			now = now[1:]
			continue
		}
		switch order := compareNames(before[0], now[0]); {
		case order < 0:
			differs(before[0].Ref())
			before = before[1:]
		case order > 0:
			differs(now[0].Ref())
			now = now[1:]
		default:
			differs(now[0].Ref())
			before = before[1:]
			now = now[1:]
		}
	}
	for _, rest := range [][]*Object{before, now} {
		for _, o := range rest {
			differs(o.Ref())
		}
	}
}
