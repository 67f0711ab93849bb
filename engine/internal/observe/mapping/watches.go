package mapping

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/labels"
)

// Watch declares the watched resources to a controller that is not running yet. The event of a
// parent enqueues its own key; that of an input or of an output enqueues its part alone.
func (s *Shape) Watch(c *loop.Loop[hook.Key]) {
	index := newSelections(s)
	if s.namespaces.Plural != "" { // before the parents, so that the first list finds none of them
		c.Watch(s.namespaces, s.noting(c, func(old, current *object.Object) []hook.Key {
			return index.namespaceChanged(c, old, current)
		}))
	}
	c.For(s.rules.Resource, hook.ParentKey, s.rules.Predicate)
	c.Watch(s.rules.Resource, index.track)
	for _, r := range s.inputs {
		c.Watch(r, s.noting(c, shape.IfChanged(index.inputs)))
	}
	for i, kind := range s.outputKinds {
		c.Watch(kind.Resource, shape.IfChanged(s.owners()), s.counting(i))
		c.Index(kind.Resource, byPart)
	}
}

// owners returns the mapper from an output to its part, and to its part before the event.
func (s *Shape) owners() mapper.Func[hook.Key] {
	owner := mapper.Owner(s.rules.Resource, hook.ParentKey)
	return func(old, current *object.Object) []hook.Key {
		var keys []hook.Key
		for _, o := range []*object.Object{old, current} {
			if o == nil {
				continue
			}
			part, ok := s.partOf(o)
			if !ok {
				continue
			}
			for _, key := range owner(nil, o) {
				key.Part = part
				keys = appendKey(keys, key)
			}
		}
		return keys
	}
}

// appendKey appends a key that the list does not have.
func appendKey(keys []hook.Key, key hook.Key) []hook.Key {
	if slices.Contains(keys, key) {
		return keys
	}
	return append(keys, key)
}

// selections is the index from inputs to the parents that select them. It has the selections of all
// parents, as of their last events, and the labels of namespaces. It is safe for concurrent use.
type selections struct {
	shape *Shape
	index *mapper.Selectors[hook.Key]

	mu       sync.RWMutex // guards the fields below
	byParent map[hook.Key]selection
	// namespaces has the labels of namespaces; empty if parents do not select namespaces.
	namespaces map[string]labels.Set
}

func newSelections(s *Shape) *selections {
	return &selections{
		shape: s, index: mapper.NewSelectors[hook.Key](),
		byParent: map[hook.Key]selection{}, namespaces: map[string]labels.Set{},
	}
}

// track applies an event of a parent. It is a mapper.Func that returns no keys: the parent's own
// key enqueues its parts.
func (x *selections) track(old, current *object.Object) []hook.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	if current == nil {
		x.remove(hook.ParentKey(old.Ref()))
		return nil
	}
	key := hook.ParentKey(current.Ref())
	sel, err := x.shape.selectionOf(current)
	if err != nil || !x.shape.rules.Selected(current) { // the parent's own sync reports the error
		x.remove(key)
		return nil
	}
	x.byParent[key] = sel
	x.index.Set(key, sel.namespace, sel.selector)
	return nil
}

func (x *selections) remove(key hook.Key) {
	delete(x.byParent, key)
	x.index.Delete(key)
}

// inputs maps an input to its parts: of the parents that select it, and of those that selected it
// before the event.
func (x *selections) inputs(old, current *object.Object) []hook.Key {
	var keys []hook.Key
	for _, o := range []*object.Object{old, current} {
		if o == nil {
			continue
		}
		for _, key := range x.index.Match(o.Namespace(), o.Labels()) {
			if x.selects(key, o) {
				key.Part = KeyOf(o).String()
				keys = appendKey(keys, key)
			}
		}
	}
	return keys
}

// selects reports whether an object may be an input of a parent. It does not exclude an object in a
// namespace that is not known yet.
func (x *selections) selects(parent hook.Key, o *object.Object) bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	sel, found := x.byParent[parent]
	if !found || !sel.matches(o) {
		return false
	}
	set, known := x.namespaces[o.Namespace()]
	return !known || sel.matchesNamespace(o.Namespace(), set)
}

// namespaceChanged maps a namespace to the parts of its objects, if a parent selects the namespace
// only before or only after the event.
func (x *selections) namespaceChanged(c *loop.Loop[hook.Key], old, current *object.Object) []hook.Key {
	parents := x.namespaceEvent(old, current)
	if len(parents) == 0 {
		return nil
	}
	namespace := cmp.Or(current, old).Name()
	keys, err := x.partsIn(c.Reader(), namespace, parents)
	if err != nil { // a view is not good: the parents' own keys enqueue all parts when it is
		cause := queue.Cause{Kind: queue.CauseTrigger, Reason: "the labels of namespace " + namespace + " have changed"}
		for parent := range parents {
			c.Enqueue(parent, queue.Child, cause)
		}
	}
	return keys
}

// namespaceEvent applies an event of a namespace, and returns the parents that select the namespace
// only before or only after it.
func (x *selections) namespaceEvent(old, current *object.Object) map[hook.Key]selection {
	x.mu.Lock()
	if current == nil {
		delete(x.namespaces, old.Name())
	} else {
		x.namespaces[current.Name()] = current.Labels()
	}
	x.mu.Unlock()
	if old != nil && current != nil && maps.Equal(old.Labels(), current.Labels()) {
		return nil
	}
	selects := func(sel labels.Selector, o *object.Object) bool {
		return o != nil && sel.Matches(labels.Set(o.Labels()))
	}
	return x.parentsOf(func(sel selection) bool {
		return sel.namespaces != nil && selects(sel.namespaces, old) != selects(sel.namespaces, current)
	})
}

// parentsOf returns the parents with a selection for which match returns true.
func (x *selections) parentsOf(match func(selection) bool) map[hook.Key]selection {
	x.mu.RLock()
	defer x.mu.RUnlock()
	var found map[hook.Key]selection
	for key, sel := range x.byParent {
		if match(sel) {
			if found == nil {
				found = map[hook.Key]selection{}
			}
			found[key] = sel
		}
	}
	return found
}

// partsIn returns the parts of the objects in a namespace that parents select by their labels.
func (x *selections) partsIn(r view.Reader, namespace string, parents map[hook.Key]selection) ([]hook.Key, error) {
	var keys []hook.Key
	for _, resource := range x.shape.inputs {
		if !resource.Namespaced {
			continue
		}
		v, err := r.View(resource)
		if err != nil {
			return nil, err
		}
		for o := range v.List(namespace).All() {
			for key, sel := range parents {
				if sel.matches(o) {
					key.Part = KeyOf(o).String()
					keys = append(keys, key)
				}
			}
		}
	}
	return keys, nil
}
