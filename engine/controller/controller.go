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

// Controller is the declaration of a controller of objects of type T. All methods return the
// Controller itself, so that a declaration is one expression. Faults of a declaration are reported
// together when the process starts.
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

// watch is a further type.
type watch struct {
	of      Type
	mappers []Mapper
}

// New declares a controller of a Go type. The name identifies it in logs, metrics and traces, and
// is its field manager.
func New[T Object](name string) *Controller[T] {
	return &Controller[T]{name: name, primary: TypeOf[T]()}
}

// NewFor declares a controller of a kind without a Go type.
func NewFor(name string, gvk schema.GroupVersionKind) *Controller[*unstructured.Unstructured] {
	return &Controller[*unstructured.Unstructured]{name: name, primary: TypeFor(gvk)}
}

// Name returns the name.
func (c *Controller[T]) Name() string { return c.name }

// Watch declares a further type, which the reconciler may read. Its events reconcile the keys that
// the mappers return, and those that have read the object in its old or new state: their bound
// references. Mappers are needed only for keys that have not been reconciled yet.
func (c *Controller[T]) Watch(t Type, mappers ...Mapper) *Controller[T] {
	c.watches = append(c.watches, watch{t, mappers})
	return c
}

// Source declares a source of keys that is no watch of Kubernetes objects.
func (c *Controller[T]) Source(s Source) *Controller[T] {
	c.sources = append(c.sources, s)
	return c
}

// Index declares an index of T or of a watched type, for By and for mappers.
func (c *Controller[T]) Index(i AnyIndex) *Controller[T] {
	c.indexes = append(c.indexes, i)
	return c
}

// BoundIn declares a field, as a rule of the status, in which objects of type T have the references
// of their last reconcile (Runtime.References). An event of a watched object also reconciles the
// objects that have it in the field. Without BoundIn references are kept in memory, and rebuilt by
// the first reconcile of a process.
func (c *Controller[T]) BoundIn(field func(T) []Reference) *Controller[T] {
	c.bound = append(c.bound, RefersTo(newIndex(c.primary, "bound references", field)))
	return c
}

// Initialize declares a function that runs once, after the caches are filled and before the first
// reconcile. If it fails, the controller is started again after a backoff.
func (c *Controller[T]) Initialize(f func(ctx context.Context, rt *Runtime) error) *Controller[T] {
	c.initialize = f
	return c
}

// Reconciler declares the reconciler.
func (c *Controller[T]) Reconciler(r Reconciler[T]) *Controller[T] {
	c.reconciler = r
	return c
}

// Workers sets the number of reconciles at the same time; the default is the process's.
func (c *Controller[T]) Workers(n int) *Controller[T] {
	c.workers = n
	return c
}

// Resync reconciles every object once in each period, at the lowest priority. The default is never.
func (c *Controller[T]) Resync(period time.Duration) *Controller[T] {
	c.resync = period
	return c
}

// Where restricts the controller to the objects that accept returns true for. All restrictions must
// accept an object. An object that ceases to be accepted is no longer reconciled.
func (c *Controller[T]) Where(accept func(T) bool) *Controller[T] {
	c.where = append(c.where, accept)
	return c
}

// WhereLabels restricts the controller to the objects with labels that the selector matches, as
// Where does.
func (c *Controller[T]) WhereLabels(s labels.Selector) *Controller[T] {
	c.selectors = append(c.selectors, s)
	return c
}
