package controller

import (
	"context"
	"time"

	"github.com/hookloop/hookloop/engine/internal/host"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Declared is a controller that a program has declared: a [*Controller], or an actor.Declaration.
// Pass it to server.Config.Controllers or to controllertest. Only this module can implement it.
type Declared interface {
	// Name returns the name of the controller.
	Name() string
	// Declared returns the declaration for the engine. Programs have no need to call it.
	Declared() host.Declared
}

// declared is a declaration as the engine uses it.
type declared[T Object] struct{ *Controller[T] }

// Declared implements [Declared].
func (c *Controller[T]) Declared() host.Declared { return declared[T]{c} }

// Controller declares a controller for objects of type T. Use [New] or [NewFor] to make one, and
// [Controller.Reconciler] to set what it does; everything else is optional. Each method returns the
// Controller, so that calls can be chained. When the process starts it reports all faults of a
// declaration at once.
type Controller[T Object] struct {
	name       string
	primary    Type
	watches    []watch
	sources    []Source
	indexes    []AnyIndex
	bound      []Mapper
	where      []func(T) bool
	selectors  []labels.Selector
	initialize func(context.Context, *Runtime) error
	reconciler Reconciler[T]
	workers    int
	resync     time.Duration
}

// watch declares a watch of a further type.
type watch struct {
	of      Type
	mappers []Mapper
}

// New declares a controller for a Go type, which the scheme of the process must have. The name is
// used in logs, metrics and traces, and as the field manager of writes. It must be unique in the
// process and have at most 63 letters, digits, "-", "_" and ".".
func New[T Object](name string) *Controller[T] {
	return &Controller[T]{name: name, primary: TypeOf[T]()}
}

// NewFor declares a controller for a kind without a Go type. See [New] for the name.
func NewFor(name string, gvk schema.GroupVersionKind) *Controller[*unstructured.Unstructured] {
	return &Controller[*unstructured.Unstructured]{name: name, primary: TypeFor(gvk)}
}

// Name returns the name that was passed to New.
func (c *Controller[T]) Name() string { return c.name }

// Watch declares a further type, which the reconciler can then read. When an object of this type
// changes, the keys that have read it are reconciled. Use mappers for keys that cannot have read it
// yet; see [OwnerOf] and [RefersTo].
func (c *Controller[T]) Watch(t Type, mappers ...Mapper) *Controller[T] {
	c.watches = append(c.watches, watch{t, mappers})
	return c
}

// Source adds keys that do not come from a watch of Kubernetes objects, for example from a [Webhook]
// or from the gateway ([Triggers]).
func (c *Controller[T]) Source(s Source) *Controller[T] {
	c.sources = append(c.sources, s)
	return c
}

// Index declares an index of T or of a watched type. Use it with [By] and in mappers.
func (c *Controller[T]) Index(i AnyIndex) *Controller[T] {
	c.indexes = append(c.indexes, i)
	return c
}

// BoundIn names the field of T, usually in the status, where the reconciler stores what it has read
// ([Runtime.References]). A new process then knows from this field which objects depend on which. By
// default these references are only kept in memory, and the first reconcile of each key finds them
// again.
func (c *Controller[T]) BoundIn(field func(T) []Reference) *Controller[T] {
	c.bound = append(c.bound, RefersTo(newIndex(c.primary, "bound references", field)))
	return c
}

// Initialize sets a function that runs after the caches are filled and before the first reconcile.
// If it returns an error, the controller starts again after a backoff, and calls f again.
func (c *Controller[T]) Initialize(f func(ctx context.Context, rt *Runtime) error) *Controller[T] {
	c.initialize = f
	return c
}

// Reconciler sets the reconciler. It is required.
func (c *Controller[T]) Reconciler(r Reconciler[T]) *Controller[T] {
	c.reconciler = r
	return c
}

// Workers sets how many keys are reconciled at the same time. The default is the number of workers of
// the process (--workers).
func (c *Controller[T]) Workers(n int) *Controller[T] {
	c.workers = n
	return c
}

// Resync reconciles every object once per period, after all other work. By default, objects are
// reconciled only when something changes.
func (c *Controller[T]) Resync(period time.Duration) *Controller[T] {
	c.resync = period
	return c
}

// Where restricts the controller to the objects for which accept returns true. If Where and
// WhereLabels are called several times, all of them must accept an object. An object that is no
// longer accepted is no longer reconciled. accept must not change the object.
func (c *Controller[T]) Where(accept func(T) bool) *Controller[T] {
	c.where = append(c.where, accept)
	return c
}

// WhereLabels restricts the controller to the objects whose labels match s. See [Controller.Where].
func (c *Controller[T]) WhereLabels(s labels.Selector) *Controller[T] {
	c.selectors = append(c.selectors, s)
	return c
}
