// Package observe makes the shape of a declared controller. It is the one place that knows the
// shapes of all kinds; each is in a package of its own below.
package observe

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe/composite"
	"github.com/hookloop/hookloop/engine/internal/observe/decorator"
	"github.com/hookloop/hookloop/engine/internal/observe/mapping"
	"github.com/hookloop/hookloop/engine/internal/observe/parts"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// Shape is a shape that declares the resources that its controller watches.
type Shape interface {
	shape.Shape
	Watch(*loop.Loop[hook.Key])
}

// PartedShape is a Shape with parents that are reconciled in parts.
type PartedShape interface {
	Shape
	// Tracker returns the tracker of the parents.
	Tracker() *parts.Tracker
	// Begin notes that a sync begins.
	Begin(queue.Item[hook.Key])
	// End notes the result of the sync of a part.
	End(r view.Reader, key hook.Key, gone bool, result parts.Result)
}

// Resources are the resources that a controller names, in the order of its spec.
type Resources struct {
	Parents, Children []object.Resource
	// Inputs are those of the declared input resources that the API server serves.
	Inputs []object.Resource
	// Namespaces is the resource of namespaces, by which cluster-scoped parents select inputs.
	Namespaces object.Resource
	// Custom reports whether a resource is a custom resource. Its result may change over time.
	Custom func(object.Resource) bool
}

// kind is what the engine has to know about the shape of a kind of controller.
type kind struct {
	// finalizerPrefix begins the name of the finalizer that parents may have.
	finalizerPrefix string
	shape           func(*object.Object, v1alpha1.Controller, Resources) (Shape, error)
}

// kinds has a row for each kind of controller.
var kinds = map[hook.ControllerKind]kind{
	hook.Composite: {composite.FinalizerPrefix, typed(
		func(o *object.Object, c *v1alpha1.CompositeController, r Resources) (Shape, error) {
			return composite.New(o, c, composite.Resources{Parent: r.Parents[0], Children: r.Children, Custom: r.Custom})
		})},
	hook.Decorator: {decorator.FinalizerPrefix, typed(
		func(o *object.Object, c *v1alpha1.DecoratorController, r Resources) (Shape, error) {
			return decorator.New(o, c, r.Parents, r.Children)
		})},
	hook.Mapping: {mapping.FinalizerPrefix, typed(
		func(o *object.Object, c *v1alpha1.MapController, r Resources) (Shape, error) {
			return mapping.New(o, c, mapping.Resources{
				Parent: r.Parents[0], Inputs: r.Inputs, Outputs: r.Children, Namespaces: r.Namespaces, Custom: r.Custom,
			})
		})},
}

// typed adapts a function for one type of declaring object.
func typed[C v1alpha1.Controller](
	shape func(*object.Object, C, Resources) (Shape, error),
) func(*object.Object, v1alpha1.Controller, Resources) (Shape, error) {
	return func(o *object.Object, c v1alpha1.Controller, r Resources) (Shape, error) {
		declared, ok := c.(C)
		if !ok {
			return nil, fmt.Errorf("got a %T, expected a %T", c, declared)
		}
		return shape(o, declared, r)
	}
}

// New returns the shape of a controller. The object and c are the same declaration. The error names
// a field of the spec.
func New(k hook.ControllerKind, o *object.Object, c v1alpha1.Controller, r Resources) (Shape, error) {
	return kinds[k].shape(o, c, r)
}

// Finalizer returns the name of the finalizer that the parents of a controller may have.
func Finalizer(k hook.ControllerKind, controller string) string {
	return kinds[k].finalizerPrefix + controller
}
