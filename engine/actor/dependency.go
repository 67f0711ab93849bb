package actor

import (
	"cmp"
	"reflect"
	"strconv"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Type is a Go type of objects that an actor reads.
type Type struct {
	controller.Type
	// id is the Go type's name with its package.
	id    string
	zero  func() Object
	get   func(controller.Reader, controller.Key) (Object, error)
	owned func(controller.Reader, Object) ([]Object, error)
}

// TypeOf returns the Type of a Go type.
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

// Dependent is implemented by types with objects that depend on others. An actor for other types
// has them declared by Declaration.Dependencies.
type Dependent interface {
	// Dependencies returns the dependencies of the object. It must depend on the object alone, and
	// must not fail for the zero value: the dependencies of that declare the types.
	Dependencies() []Dependency
}

// Dependency is an object that another one depends on, and its required state.
type Dependency struct {
	of Type
	// key names the object. An empty namespace means that of the dependent object.
	key        types.NamespacedName
	optional   bool
	unset      bool
	predicates []Predicate
	// fill copies the found object into the one that was passed to Require; strip reduces that one to
	// its name.
	fill  func(Object)
	strip func()
}

// Require declares that an object depends on another one, which must exist and meet all
// predicates. Only namespace and name of the other object are used; an empty namespace means that
// of the dependent object. If it is nil, the dependency is never met (see Optional).
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

// Optional is Require for an object that may be nil: then there is no dependency.
func Optional[T Object](o T, predicates ...Predicate) Dependency {
	d := Require(o, predicates...)
	d.optional = true
	return d
}

// Reference returns an object with the namespace and the name of another one, and nothing else. It
// is the value for a field that names a dependency.
func Reference[T Object](o T) T {
	reference := newObject[T]()
	reference.SetNamespace(o.GetNamespace())
	reference.SetName(o.GetName())
	return reference
}

// ignored reports whether there is no dependency.
func (d Dependency) ignored() bool { return d.optional && d.unset }

// name names the dependency in messages: its kind with its key.
func (d Dependency) name(kind string) string {
	if d.unset {
		return kind
	}
	return kind + " " + quoted(d.key)
}

// quoted returns a key for messages: namespace and name, or the name of a cluster-scoped object.
func quoted(key types.NamespacedName) string {
	return strconv.Quote(object.Ref{Namespace: key.Namespace, Name: key.Name}.NamespacedName())
}

// The reasons of DependenciesMet=False.
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

// problem is a dependency that is not met.
type problem struct{ reason, message string }

// check returns why an existing object does not meet a dependency, and an empty text if it does.
func (d Dependency) check(o Object) string {
	for _, p := range d.predicates {
		if text := p.unmet(o); text != "" {
			return text
		}
	}
	return ""
}

// declaredDependencies returns the dependencies of an object by its type; nil without any.
func declaredDependencies[T Object](o T) []Dependency {
	if d, ok := any(o).(Dependent); ok {
		return d.Dependencies()
	}
	return nil
}

// indexValues returns the values of a dependent object in the index of dependencies. A dependency
// without a namespace is in the object's namespace, or is cluster-scoped.
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

// indexValue is the value of one object that others depend on.
func indexValue(id string, key types.NamespacedName) string { return id + " " + key.String() }

// in returns the key of a dependency of an object in a namespace.
func (d Dependency) in(namespace string, namespaced bool) types.NamespacedName {
	if !namespaced {
		return d.key
	}
	return types.NamespacedName{Namespace: cmp.Or(d.key.Namespace, namespace), Name: d.key.Name}
}
