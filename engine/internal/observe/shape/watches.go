package shape

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/object"
)

// Watches are the resources that a controller watches for its shape.
type Watches struct {
	// Parents are watched as the controller's keys.
	Parents []*ParentRules
	// Children are watched for their owners, the parents.
	Children []object.Resource
	// Selectors are the parents' if they adopt orphans, else nil.
	Selectors *Selectors
}

// Watch declares the resources to a controller that is not running yet.
func (w *Watches) Watch(c *loop.Loop[hook.Key]) {
	var mappers []mapper.Func[hook.Key]
	for _, p := range w.Parents {
		c.For(p.Resource, hook.ParentKey, p.Predicate)
		mappers = append(mappers, mapper.Owner(p.Resource, hook.ParentKey))
		if w.Selectors != nil {
			c.Watch(p.Resource, w.Selectors.Track)
		}
	}
	if w.Selectors != nil {
		mappers = append(mappers, w.Selectors.Orphans())
	}
	for i, m := range mappers {
		mappers[i] = IfChanged(m)
	}
	for _, r := range w.Children {
		c.Watch(r, mappers...)
	}
}

// IfChanged returns a mapper that maps an update only if the hook sees more of it than another
// resourceVersion, or if the records of dynamic or server-side apply have changed. Updates of other
// managedFields are none.
func IfChanged(m mapper.Func[hook.Key]) mapper.Func[hook.Key] {
	return func(old, current *object.Object) []hook.Key {
		if old != nil && current != nil && object.EqualButVersion(old, current) && object.EqualRecords(old, current) {
			return nil
		}
		return m(old, current)
	}
}
