package controller

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/internal/loop/references"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reference names an object of any type, in any version. It is comparable, so an Index can have it
// as its value, and a status can hold it.
type Reference struct {
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// Namespace is empty for a cluster-scoped object.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// DeepCopyInto copies a Reference, for the generated code of types that have one.
func (r *Reference) DeepCopyInto(to *Reference) { *to = *r }

// DeepCopy returns a copy.
func (r *Reference) DeepCopy() *Reference {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

// RefTo returns the Reference of a kind and a key.
func RefTo(kind schema.GroupKind, key Key) Reference {
	return Reference{Group: kind.Group, Kind: kind.Kind, Namespace: key.Namespace, Name: key.Name}
}

// Key returns the key of the object.
func (r Reference) Key() Key { return Key{Namespace: r.Namespace, Name: r.Name} }

func referenceTo(r object.Ref) Reference {
	return Reference{Group: r.GVK.Group, Kind: r.GVK.Kind, Namespace: r.Namespace, Name: r.Name}
}

func (r Reference) compare(o Reference) int {
	return cmp.Or(cmp.Compare(r.Group, o.Group), cmp.Compare(r.Kind, o.Kind),
		cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// References returns the objects that this reconcile has read up to now, sorted, each once: those
// that it has found, and those that it has looked for by name in vain. A controller need not do
// anything with them to be called again when one of them changes; it can store them in a status
// field (see Controller.BoundIn).
func (rt *Runtime) References() []Reference { return rt.reader.reads.references() }

// reads records what one reconcile reads: each method is called before the read, and saw after it.
// A nil *reads records nothing. It is safe for concurrent use.
type reads struct {
	recorder *references.Recorder[Key]

	mu sync.Mutex // guards the fields below
	// names are the reads by name, and lists the results of the others.
	names map[object.Ref]struct{}
	lists []view.List
	// found reports whether a read has found anything.
	found bool
}

func newReads(r *references.Recorder[Key]) *reads {
	return &reads{recorder: r, names: map[object.Ref]struct{}{}}
}

func (s *reads) get(r object.Resource, key Key) {
	if s == nil {
		return
	}
	s.recorder.Object(r, key.Namespace, key.Name)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names[object.Ref{GVK: r.GVK, Namespace: key.Namespace, Name: key.Name}] = struct{}{}
}

func (s *reads) list(r object.Resource, namespace string, selector labels.Selector) {
	if s != nil {
		s.recorder.Selected(r, namespace, selector)
	}
}

func (s *reads) owned(r object.Resource, owner view.Owner) {
	if s != nil {
		s.recorder.Owned(r, owner)
	}
}

// index records a read of a value of an index. The result depends on the objects without a known
// value, too.
func (s *reads) index(r object.Resource, i *view.Index, value string) {
	if s != nil {
		s.recorder.Indexed(r, i, value)
		s.recorder.Indexed(r, i, unindexable)
	}
}

// len returns the number of references so far.
func (s *reads) len() int {
	if s == nil {
		return 0
	}
	return s.recorder.Len()
}

// saw records the result of a list.
func (s *reads) saw(l view.List) view.List {
	if s == nil || l.Len() == 0 {
		return l
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists = append(s.lists, l)
	s.found = true
	return l
}

// sawObject records the result of a read by name, which may be nil.
func (s *reads) sawObject(o *object.Object) {
	if s == nil || o == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found = true
}

// end makes the reads the references of the key. exists reports whether the key's object does.
func (s *reads) end(failed, exists bool) {
	if failed {
		s.recorder.Failed()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recorder.Done(!exists && !s.found)
}

func (s *reads) references() []Reference {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Reference, 0, len(s.names))
	for ref := range s.names {
		all = append(all, referenceTo(ref))
	}
	for _, l := range s.lists {
		for o := range l.All() {
			all = append(all, referenceTo(o.Ref()))
		}
	}
	slices.SortFunc(all, Reference.compare)
	return slices.Compact(all)
}
