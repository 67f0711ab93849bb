package actor

import (
	"cmp"
	"reflect"
	"strconv"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Type identifies the Go type of objects that an actor reads. Use [TypeOf] to get one.
type Type struct {
	controller.Type
	// id is the name of the Go type with its package.
	id    string
	zero  func() Object
	get   func(controller.Reader, controller.Key) (Object, error)
	owned func(controller.Reader, Object) ([]Object, error)
}

// TypeOf returns the [Type] of T, which must be a pointer to a struct.
func TypeOf[T Object]() Type {
	of := reflect.TypeFor[T]()
	return Type{
		Type: controller.TypeOf[T](),
		id:   of.Elem().PkgPath() + "." + of.Elem().Name(),
		zero: func() Object { return newObject[T]() },
		get:  func(r controller.Reader, key controller.Key) (Object, error) { return controller.Get[T](r, key) },
		owned: func(r controller.Reader, owner Object) ([]Object, error) {
			found, err := controller.Owned[T](r, owner)
			objects := make([]Object, 0, len(found))
			for _, o := range found {
				objects = append(objects, o)
			}
			return objects, err
		},
	}
}

// newObject returns a new zero object. T is a pointer to a struct.
func newObject[T Object]() T {
	o, _ := reflect.New(reflect.TypeFor[T]().Elem()).Interface().(T)
	return o
}

// Dependent can be implemented by an API type to say which other objects its objects wait for. For
// a type that you cannot change, use Declaration.Dependencies.
type Dependent interface {
	// Dependencies returns what this object waits for. The result must depend on the object alone. It
	// must not panic for the zero value, because the actor calls it once to learn the types to watch.
	Dependencies() []Dependency
}

// Dependency names an object that another one waits for, and the state in which it should be. Make
// one with [Require] or [Optional].
type Dependency struct {
	of Type
	// key names the object. If its namespace is empty, the namespace of the waiting object is used.
	key        types.NamespacedName
	optional   bool
	unset      bool
	predicates []Predicate
	// fill copies the object that was found into the one that was passed to Require. strip removes
	// everything but the name from that one.
	fill  func(Object)
	strip func()
}

// Require makes an object wait until o exists and meets all predicates. Only the namespace and name
// of o are used; if the namespace is empty, the namespace of the waiting object is used. If o is
// nil, the dependency is never met; use [Optional] for a reference that may be absent.
func Require[T Object](o T, predicates ...Predicate) Dependency {
	d := Dependency{of: TypeOf[T](), predicates: predicates, fill: func(Object) {}, strip: func() {}}
	value := reflect.ValueOf(o)
	if !value.IsValid() || value.IsNil() {
		d.unset = true
		return d
	}
	d.key = controller.KeyOf(o)
	d.fill = func(found Object) { value.Elem().Set(reflect.ValueOf(found).Elem()) }
	d.strip = func() { value.Elem().Set(reflect.ValueOf(Reference(o)).Elem()) }
	return d
}

// Optional is like [Require], but if o is nil the object does not wait.
func Optional[T Object](o T, predicates ...Predicate) Dependency {
	d := Require(o, predicates...)
	d.optional = true
	return d
}

// Reference returns an object with only the namespace and name of o. Use it to set a field that
// names a dependency.
func Reference[T Object](o T) T {
	reference := newObject[T]()
	reference.SetNamespace(o.GetNamespace())
	reference.SetName(o.GetName())
	return reference
}

// ignored returns true for an Optional that was not set.
func (d Dependency) ignored() bool { return d.optional && d.unset }

// name describes the dependency in messages by its kind and key.
func (d Dependency) name(kind string) string {
	if d.unset {
		return kind
	}
	return kind + " " + quoted(d.key)
}

// quoted formats a key for messages: namespace and name, or only the name if the object is
// cluster-scoped.
func quoted(key types.NamespacedName) string {
	return strconv.Quote(object.Ref{Namespace: key.Namespace, Name: key.Name}.NamespacedName())
}

// These are the reasons that a condition DependenciesMet=False can have.
const (
	reasonNotSet     = "NotSet"
	reasonNotServed  = "KindNotServed"
	reasonUndeclared = "TypeNotDeclared"
	reasonNotFound   = "NotFound"
	reasonInvalid    = "Invalid"
	reasonNotReady   = "NotReady"
	reasonCircle     = "Circle"
)

// reasonPanicked is the reason of Events about dependencies that panic.
const reasonPanicked = "DependenciesPanicked"

// problem says why a dependency is not met.
type problem struct{ reason, message string }

// check returns why an existing object does not meet the dependency, or "" if it does.
func (d Dependency) check(o Object) string {
	for _, p := range d.predicates {
		if text := p.unmet(o); text != "" {
			return text
		}
	}
	return ""
}

// declaredDependencies calls Dependencies if the type of the object has it.
func declaredDependencies[T Object](o T) []Dependency {
	if d, ok := any(o).(Dependent); ok {
		return d.Dependencies()
	}
	return nil
}

// indexValues returns the values under which an object is found by the objects it waits for. A
// dependency without a namespace is in the object's own namespace, or is cluster-scoped.
func indexValues(namespace string, dependencies []Dependency) []string {
	var values []string
	for _, d := range dependencies {
		if d.unset {
			continue
		}
		values = append(values, indexValue(d.of.id, d.key))
		if d.key.Namespace == "" && namespace != "" {
			values = append(values, indexValue(d.of.id, types.NamespacedName{Namespace: namespace, Name: d.key.Name}))
		}
	}
	return values
}

// indexValue returns the value for one object that others wait for.
func indexValue(id string, key types.NamespacedName) string { return id + " " + key.String() }

// in returns the key of a dependency of an object in a namespace.
func (d Dependency) in(namespace string, namespaced bool) types.NamespacedName {
	if !namespaced {
		return d.key
	}
	return types.NamespacedName{Namespace: cmp.Or(d.key.Namespace, namespace), Name: d.key.Name}
}
