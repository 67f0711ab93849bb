package controller

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reader reads the types that a controller declares, from the cache. A Request and its Runtime are
// Readers; mappers and sources get one, too.
type Reader interface{ reading() *access }

// access is the state of a Reader.
type access struct {
	controller string
	scheme     *runtime.Scheme
	views      view.Reader
	// memo keeps decoded objects; nil keeps none.
	memo *memo
	// declared are the resources of the declared types.
	declared map[schema.GroupVersionKind]object.Resource
	// indexes are the declared indexes.
	indexes map[*view.Index]bool
	// reads records the bound references; nil records none.
	reads *reads
	// await returns when the view of a resource shows the reconcile's own writes; may be nil.
	await func(object.Resource) error
	// ended reports whether the Reader may no longer be used; may be nil.
	ended func() bool
}

func (a *access) reading() *access { return a }

// Untracked returns a Reader that records no bound references.
func Untracked(r Reader) Reader {
	a := *r.reading()
	a.reads = nil
	return &a
}

// resource returns the resource of a type. The error is an *UndeclaredError if the controller does
// not declare it.
func (a *access) resource(t Type) (object.Resource, error) {
	gvk, err := t.kind(a.scheme)
	if err != nil {
		return object.Resource{}, err
	}
	r, ok := a.declared[gvk]
	if !ok {
		return object.Resource{}, &UndeclaredError{Controller: a.controller, Type: t.String()}
	}
	return r, nil
}

// view returns the view of a type, when it shows the reconcile's own writes. record records the
// read: it is called before the view is read, so that no change between them is lost.
func (a *access) view(t Type, record func(object.Resource)) (view.View, error) {
	if a.ended != nil && a.ended() {
		return view.View{}, errEnded
	}
	r, err := a.resource(t)
	if err != nil {
		return view.View{}, err
	}
	record(r)
	if a.await != nil {
		if err := a.await(r); err != nil {
			return view.View{}, err
		}
	}
	return a.views.View(r)
}

// Get returns a private copy of an object. The error is a [*NotFoundError] if the object does not
// exist, and a [*DecodeError] if it does not fit T. Get returns another error while the cache cannot
// tell, for example because it is stale; return it from the reconciler, which is then called again.
func Get[T Object](r Reader, key Key) (T, error) { return getAs[T](r.reading(), TypeOf[T](), key) }

// GetFor is Get for a kind without a Go type.
func GetFor(r Reader, gvk schema.GroupVersionKind, key Key) (*unstructured.Unstructured, error) {
	return getAs[*unstructured.Unstructured](r.reading(), TypeFor(gvk), key)
}

// GetObject returns the object that the cache holds, without a conversion. All readers share it and
// it cannot be changed. Use it to look at metadata or to pass the object on; to read fields, [Get]
// is easier. The errors are those of Get, except that nothing is decoded.
func GetObject(r Reader, gvk schema.GroupVersionKind, key Key) (*object.Object, error) {
	return r.reading().get(TypeFor(gvk), key)
}

func getAs[T Object](a *access, t Type, key Key) (T, error) {
	o, err := a.get(t, key)
	if err != nil {
		var none T
		return none, err
	}
	return decodeBy[T](a.memo, o)
}

// get returns an object of the cache. The error is a *NotFoundError if it does not exist.
func (a *access) get(t Type, key Key) (*object.Object, error) {
	v, err := a.view(t, func(r object.Resource) { a.reads.get(r, key) })
	if err != nil {
		return nil, err
	}
	if err := checkScope(v.Resource(), key); err != nil {
		return nil, err
	}
	o := v.Get(key.Namespace, key.Name)
	a.reads.sawObject(o)
	if o == nil {
		return nil, &NotFoundError{object.Ref{GVK: v.Resource().GVK, Namespace: key.Namespace, Name: key.Name}}
	}
	return o, nil
}

// checkScope refuses a key that can name no object of a resource.
func checkScope(r object.Resource, key Key) error {
	switch {
	case key.Name == "":
		return fmt.Errorf("get %s: the name is empty", r)
	case r.Namespaced && key.Namespace == "":
		return fmt.Errorf("get %s %q: the resource is namespaced, expected a namespace", r, key.Name)
	case !r.Namespaced && key.Namespace != "":
		return fmt.Errorf("get %s %q: the resource is cluster-scoped, expected no namespace", r, key)
	}
	return nil
}

// ListOption restricts a List.
type ListOption func(*listing)

// listing is what a List selects.
type listing struct {
	namespace string
	selector  labels.Selector
}

// InNamespace restricts a List to one namespace.
func InNamespace(namespace string) ListOption { return func(l *listing) { l.namespace = namespace } }

// MatchingLabels restricts a List to objects with these labels.
func MatchingLabels(set map[string]string) ListOption {
	return MatchingSelector(labels.SelectorFromSet(set))
}

// MatchingSelector restricts a List to objects with labels that the selector matches. Several
// options must all match.
func MatchingSelector(s labels.Selector) ListOption {
	return func(l *listing) {
		requirements, selectable := s.Requirements()
		if !selectable {
			l.selector = s
			return
		}
		l.selector = l.selector.Add(requirements...)
	}
}

// List returns private copies of the objects that all options select, in no order.
func List[T Object](r Reader, options ...ListOption) ([]T, error) {
	return listAs[T](r.reading(), TypeOf[T](), options)
}

// ListFor is List for a kind without a Go type.
func ListFor(
	r Reader, gvk schema.GroupVersionKind, options ...ListOption,
) ([]*unstructured.Unstructured, error) {
	return listAs[*unstructured.Unstructured](r.reading(), TypeFor(gvk), options)
}

func listAs[T Object](a *access, t Type, options []ListOption) ([]T, error) {
	l := listing{selector: labels.Everything()}
	for _, o := range options {
		o(&l)
	}
	v, err := a.view(t, func(r object.Resource) { a.reads.list(r, l.namespace, l.selector) })
	if err != nil {
		return nil, err
	}
	return decodeAll[T](a, a.reads.saw(v.Select(l.namespace, l.selector)))
}

// Owned returns private copies of the objects that owner controls, in the order of namespace and
// name.
func Owned[T Object](r Reader, owner Object) ([]T, error) {
	return ownedAs[T](r.reading(), TypeOf[T](), ownerOf(owner))
}

// OwnedFor is Owned for a kind without a Go type.
func OwnedFor(r Reader, gvk schema.GroupVersionKind, owner Object) ([]*unstructured.Unstructured, error) {
	return ownedAs[*unstructured.Unstructured](r.reading(), TypeFor(gvk), ownerOf(owner))
}

func ownerOf(o Object) view.Owner { return view.Owner{UID: o.GetUID(), Namespace: o.GetNamespace()} }

func ownedAs[T Object](a *access, t Type, owner view.Owner) ([]T, error) {
	if owner.UID == "" {
		return nil, fmt.Errorf("objects of type %s by their owner: the owner has no UID", t)
	}
	v, err := a.view(t, func(r object.Resource) { a.reads.owned(r, owner) })
	if err != nil {
		return nil, err
	}
	return decodeAll[T](a, a.reads.saw(v.OwnedBy(owner)))
}

func decodeAll[T Object](a *access, l view.List) ([]T, error) {
	all := make([]T, 0, l.Len())
	for o := range l.All() {
		typed, err := decodeBy[T](a.memo, o)
		if err != nil {
			return nil, err
		}
		all = append(all, typed)
	}
	return all, nil
}
