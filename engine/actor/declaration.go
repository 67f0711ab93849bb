package actor

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/internal/host"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FinalizerPrefix and the name of the actor make up the finalizer that an actor adds to its objects.
const FinalizerPrefix = "hookloop.dev/actor-"

// DefaultActions is the default of Declaration.Actions.
const DefaultActions = 20

// Declaration declares an actor. Use [New] to make one and pass it to server.Config.Controllers. Each
// method returns the Declaration, so that calls can be chained. When the process starts it reports
// all faults of a declaration at once.
type Declaration[T Object] struct {
	name         string
	actor        Actor[T]
	of           Type
	dependsOn    []Type
	owns         []Type
	dependencies func(T) []Dependency
	dependents   []dependentType
	actions      int
	untraced     bool
	configure    []func(*controller.Controller[T])
}

// New declares an actor for objects of a Go type, which the scheme of the process must have. The name
// is used in logs, metrics, traces and in the finalizer. It must be unique in the process and have at
// most 42 lower-case letters, digits, "-" and ".".
func New[T Object](name string, a Actor[T]) *Declaration[T] {
	return &Declaration[T]{
		name: name, actor: a, of: TypeOf[T](), dependencies: declaredDependencies[T], actions: DefaultActions,
	}
}

// Name returns the name that was passed to New.
func (d *Declaration[T]) Name() string { return d.name }

// Owns declares the types of the children that the actor creates, reads and cleans up.
func (d *Declaration[T]) Owns(types ...Type) *Declaration[T] {
	d.owns = append(d.owns, types...)
	return d
}

// DependsOn declares types that objects may depend on. It is needed only for types that the
// Dependencies of a zero value do not name.
func (d *Declaration[T]) DependsOn(types ...Type) *Declaration[T] {
	d.dependsOn = append(d.dependsOn, types...)
	return d
}

// Dependencies sets the function that returns an object's dependencies, for a type that does not
// implement [Dependent]. The function must follow the rules of Dependent.
func (d *Declaration[T]) Dependencies(of func(T) []Dependency) *Declaration[T] {
	d.dependencies = of
	return d
}

// Actions sets how many actions one reconcile may run; the default is [DefaultActions]. An object that
// needs more goes back into the queue, so that other objects are not kept waiting.
func (d *Declaration[T]) Actions(n int) *Declaration[T] {
	d.actions = n
	return d
}

// WithoutTraces does not write the trace context into annotations of the children. The change of an
// object and the work on its children are then separate traces.
func (d *Declaration[T]) WithoutTraces() *Declaration[T] {
	d.untraced = true
	return d
}

// Controller configures the controller that runs the actor: its workers, resync period, further
// watched types, sources, indexes and restrictions. configure must not set a reconciler.
func (d *Declaration[T]) Controller(configure func(*controller.Controller[T])) *Declaration[T] {
	d.configure = append(d.configure, configure)
	return d
}

// declared is a declaration as the engine uses it.
type declared[T Object] struct{ *Declaration[T] }

// Declared implements [controller.Declared].
func (d *Declaration[T]) Declared() host.Declared { return declared[T]{d} }

// Link implements host.Linker: it returns a declaration that knows the actors with objects that
// depend on its own. The error names circles between types.
func (d declared[T]) Link(all []host.Declared) (host.Declared, error) {
	types := map[string]string{}
	edges := map[string][]string{}
	linked := *d.Declaration
	for _, other := range all {
		p, ok := other.(peer)
		if !ok {
			continue
		}
		id := p.target().id
		types[id] = p.target().String()
		for _, needed := range p.needs() {
			types[needed.id] = needed.String()
			if needed.id == id { // objects of one type may depend on each other
				continue
			}
			edges[id] = append(edges[id], needed.id)
		}
		if slices.ContainsFunc(p.needs(), func(t Type) bool { return t.id == d.of.id }) {
			linked.dependents = append(linked.dependents, p.dependent())
		}
	}
	circle, err := findCircle([]string{d.of.id}, maxTypes,
		func(id string) ([]string, error) { return edges[id], nil })
	if err != nil {
		return nil, fmt.Errorf("actor %q: %w", d.name, err)
	}
	if circle != nil {
		for i, id := range circle {
			circle[i] = types[id]
		}
		return nil, fmt.Errorf("actor %q: dependencies of types form a circle: %s", d.name, strings.Join(circle, " → "))
	}
	return declared[T]{&linked}, nil
}

// maxTypes bounds the types in a graph of dependencies.
const maxTypes = 10_000

// peer is what actors know of each other.
type peer interface {
	target() Type
	needs() []Type
	dependent() dependentType
}

func (d *Declaration[T]) target() Type { return d.of }

// needs returns the types of the dependencies: the declared ones and those of the zero value.
func (d *Declaration[T]) needs() []Type {
	all := slices.Clone(d.dependsOn)
	for _, dependency := range d.zeroDependencies() {
		all = append(all, dependency.of)
	}
	var distinct []Type
	for _, t := range all {
		if !slices.ContainsFunc(distinct, func(other Type) bool { return other.id == t.id }) {
			distinct = append(distinct, t)
		}
	}
	return distinct
}

// zeroDependencies returns the dependencies of the zero value; none if it panics.
func (d *Declaration[T]) zeroDependencies() (all []Dependency) {
	defer func() { _ = recover() }() // DependsOn declares the types then
	return d.dependencies(newObject[T]())
}

// dependentType finds the objects of a type that depend on an object.
type dependentType struct {
	of    Type
	index controller.AnyIndex
	// find returns the dependent objects by the value of indexValue.
	find func(r controller.Reader, value string) ([]Object, error)
}

// dependent returns the index of the objects of T by their dependencies. An object with
// dependencies that panic has none: its own reconcile reports the panic, and no other object waits
// for its end.
func (d *Declaration[T]) dependent() dependentType {
	index := controller.NewIndex(d.name+" by dependency", func(o T) (values []string) {
		defer func() {
			if recover() != nil {
				values = nil
			}
		}()
		return indexValues(o.GetNamespace(), d.dependencies(o))
	})
	return dependentType{of: d.of, index: index, find: func(r controller.Reader, value string) ([]Object, error) {
		found, err := controller.By(r, index, value)
		objects := make([]Object, 0, len(found))
		for _, o := range found {
			objects = append(objects, o)
		}
		return objects, err
	}}
}

// actorName is the form of names: the finalizer contains it.
var actorName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,40}[a-z0-9])?$`)

// check returns the faults of the declaration.
func (d *Declaration[T]) check() error {
	var all []error
	fault := func(format string, args ...any) {
		all = append(all, fmt.Errorf("actor %q: "+format, append([]any{d.name}, args...)...))
	}
	if !actorName.MatchString(d.name) {
		fault("the name must be 1 to 42 lower-case letters, digits, \"-\" and \".\"")
	}
	if d.actor == nil {
		fault("the Actor is nil")
	}
	if d.actions < 1 {
		fault("Actions: got %d, expected at least 1", d.actions)
	}
	if !holdsConditions(reflect.TypeFor[T]()) {
		fault("%s has no field Status.Conditions; expected a list of conditions", d.of)
	}
	return errors.Join(all...)
}

// holdsConditions reports whether a Go type can have conditions.
func holdsConditions(t reflect.Type) bool {
	for _, name := range []string{"Status", "Conditions"} {
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return false
		}
		field, ok := t.FieldByName(name)
		if !ok {
			return false
		}
		t = field.Type
	}
	return t.Kind() == reflect.Slice
}

// Kinds implements host.Declared.
func (d declared[T]) Kinds(scheme *runtime.Scheme) ([]schema.GroupVersionKind, error) {
	if err := d.check(); err != nil {
		return nil, err
	}
	all, err := d.controller(&reconciler[T]{}, func(Type) bool { return true }).Declared().Kinds(scheme)
	if err != nil {
		return nil, err
	}
	optional, err := d.OptionalKinds(scheme)
	return slices.DeleteFunc(all, func(k schema.GroupVersionKind) bool { return slices.Contains(optional, k) }), err
}

// OptionalKinds implements host.Optional: a dependency of a kind that is not served is reported on
// the object.
func (d declared[T]) OptionalKinds(scheme *runtime.Scheme) ([]schema.GroupVersionKind, error) {
	own, err := kindOf(scheme, d.of)
	if err != nil {
		return nil, err
	}
	var optional []schema.GroupVersionKind
	for _, t := range d.optionalTypes() {
		gvk, err := kindOf(scheme, t)
		if err != nil {
			return nil, err
		}
		if gvk != own {
			optional = append(optional, gvk)
		}
	}
	return optional, nil
}

// optionalTypes are the types of dependencies and dependents, except for those of children.
func (d *Declaration[T]) optionalTypes() []Type {
	all := d.needs()
	for _, dependent := range d.dependents {
		all = append(all, dependent.of)
	}
	return slices.DeleteFunc(all, func(t Type) bool {
		return slices.ContainsFunc(d.owns, func(owned Type) bool { return owned.id == t.id })
	})
}

// kindOf returns the kind of a type.
func kindOf(scheme *runtime.Scheme, t Type) (schema.GroupVersionKind, error) {
	kinds, _, err := scheme.ObjectKinds(t.zero())
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("type %s: %w", t, err)
	}
	return kinds[0], nil
}

// Build implements host.Declared.
func (d declared[T]) Build(h *host.Host, served host.Served, filled func()) (host.Runner, error) {
	r, err := newReconciler(d.Declaration, h, served)
	if err != nil {
		return nil, err
	}
	isServed := func(t Type) bool { return r.kinds[t.id].served }
	runner, err := d.controller(r, isServed).Declared().Build(h, served, filled)
	if err != nil {
		return nil, err
	}
	return &running[T]{Runner: runner, reconciler: r}, nil
}

// controller returns the controller below the actor, with watches of the served types.
func (d *Declaration[T]) controller(r controller.Reconciler[T], served func(Type) bool) *controller.Controller[T] {
	c := controller.New[T](d.name).Reconciler(r)
	watched := map[string]bool{d.of.id: true}
	watch := func(t Type, mappers ...controller.Mapper) {
		if !watched[t.id] && served(t) {
			watched[t.id] = true
			c.Watch(t.Type, mappers...)
		}
	}
	for _, t := range d.owns {
		watch(t, controller.OwnerOf())
	}
	for _, t := range d.needs() {
		watch(t)
	}
	for _, dependent := range d.dependents {
		watch(dependent.of)
		if served(dependent.of) {
			c.Index(dependent.index)
		}
	}
	for _, configure := range d.configure {
		configure(c)
	}
	return c
}
