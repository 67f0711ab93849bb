package object

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is an immutable collection of objects. Use [Set.Get] to find an object by its reference and
// [Set.Of] to list the objects of a kind, sorted by namespace and name. The zero value is an empty
// set.
type Set struct {
	kinds []ofKind
	size  int
}

// ofKind holds the objects of one kind, sorted by namespace and name, each name once.
type ofKind struct {
	gvk     schema.GroupVersionKind
	objects []*Object
}

// NewSet returns a set of the given objects. If two have the same reference, the set holds the later
// one. Objects that are already sorted are not sorted again.
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

// Collect returns a set of the objects in the given lists without copying them. Each list must hold
// one kind only, sorted by namespace and name, each name once.
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

// Added returns the objects that are in now and not in before. Both must be sorted by namespace and
// name. Objects are compared by pointer.
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

// add adds objects of one kind.
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

// arrange sorts the objects if they are not sorted yet.
func (k *ofKind) arrange() {
	for i := 1; i < len(k.objects); i++ {
		if compareNames(k.objects[i-1], k.objects[i]) >= 0 {
			k.sort()
			return
		}
	}
}

// sort sorts a copy, because the caller of NewSet may still use the list.
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

// Get returns the object with the reference ref, or nil if the set does not hold it.
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

// Of returns the objects of a kind, sorted by namespace and name. The caller must not change the
// slice, but may append to it.
func (s Set) Of(gvk schema.GroupVersionKind) []*Object {
	if k := s.find(gvk); k != nil {
		return slices.Clip(k.objects)
	}
	return nil
}

// Len returns the number of objects.
func (s Set) Len() int { return s.size }

// With returns a set that also holds the given objects. They replace those with the same reference.
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

// Compare calls differs for each reference whose object was added, removed or replaced between
// before and now. Objects are compared by pointer.
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
