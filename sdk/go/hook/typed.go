package hook

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Decode decodes an observed object into a T, which can be a struct with JSON tags or a
// map[string]any. Unlike encoding/json, it distinguishes upper and lower case, as Kubernetes does,
// so each field needs a tag such as `json:"spec"`. Decode returns an error if a field and a key of
// the object differ only in case. Integers in untyped fields become int64 and keep all digits.
func Decode[T any](o Object) (*T, error) {
	if err := checkCase(reflect.TypeFor[T](), o.JSON); err != nil {
		return nil, fmt.Errorf("%s %q: %w", kindKey(o.APIVersion, o.Kind), o.key(Object{}), err)
	}
	into := new(T)
	if err := kjson.UnmarshalCaseSensitivePreserveInts(o.JSON, into); err != nil {
		return nil, fmt.Errorf("%s %q: %w", kindKey(o.APIVersion, o.Kind), o.key(Object{}), err)
	}
	return into, nil
}

// Request is implemented by [*SyncRequest], [*MapRequest] and [*TombstoneRequest].
type Request interface {
	parent() Object
	related() map[string]RelatedGroup
}

func (r *SyncRequest) parent() Object                        { return r.Parent }
func (r *SyncRequest) related() map[string]RelatedGroup      { return r.Related }
func (r *MapRequest) parent() Object                         { return r.Parent }
func (r *MapRequest) related() map[string]RelatedGroup       { return r.Related }
func (r *TombstoneRequest) parent() Object                   { return r.Parent }
func (r *TombstoneRequest) related() map[string]RelatedGroup { return r.Related }

// Parent decodes the parent of a request. See [Decode] for the rules.
func Parent[T any](req Request) (*T, error) { return Decode[T](req.parent()) }

// Input decodes the input of a map hook. It returns an error if the input is gone. See [Decode] for
// the rules.
func Input[T any](req *MapRequest) (*T, error) {
	if req.Input.Name == "" {
		return nil, fmt.Errorf("input %s: is gone", req.MapKey)
	}
	return Decode[T](req.Input)
}

// OutputsOf decodes outputs of one kind by name, from [MapRequest].Outputs or
// [TombstoneRequest].Outputs:
//
//	configMaps, err := hook.OutputsOf[corev1.ConfigMap](req.Outputs, "ConfigMap.v1")
//
// It returns an error if the controller does not declare the kind, or if an object cannot be
// decoded.
func OutputsOf[T any](outputs Groups, kind string) (map[string]*T, error) {
	group, declared := outputs[kind]
	if !declared {
		return nil, fmt.Errorf("outputs of kind %q: expected one of the declared kinds [%s]", kind, outputs.kinds())
	}
	return DecodeGroup[T](group)
}

// Scheme maps kinds to Go types. Use a *runtime.Scheme of k8s.io/apimachinery.
type Scheme interface {
	AllKnownTypes() map[schema.GroupVersionKind]reflect.Type
}

// Children decodes the children whose kind the scheme maps to T, by name. It returns an error
// unless the controller declares exactly one such kind, or if an object cannot be decoded. If you
// have no scheme, use [ChildrenOf].
func Children[T any](req *SyncRequest, scheme Scheme) (map[string]*T, error) {
	t := reflect.TypeFor[T]()
	types := scheme.AllKnownTypes()
	var found []string
	for key := range req.Children {
		kind, version, _ := strings.Cut(key, ".")
		if types[schema.FromAPIVersionAndKind(version, kind)] == t {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("children of type %s: the scheme has it for %d of the declared kinds [%s], expected 1",
			t, len(found), req.Children.kinds())
	}
	return DecodeGroup[T](req.Children[found[0]])
}

// ChildrenOf decodes the children of one kind by name:
//
//	deployments, err := hook.ChildrenOf[appsv1.Deployment](req, "Deployment.apps/v1")
//
// It returns an error if the controller does not declare the kind, or if an object cannot be
// decoded.
func ChildrenOf[T any](req *SyncRequest, kind string) (map[string]*T, error) {
	group, declared := req.Children[kind]
	if !declared {
		return nil, fmt.Errorf("children of kind %q: expected one of the declared kinds [%s]", kind, req.Children.kinds())
	}
	return DecodeGroup[T](group)
}

// kinds lists the kinds for a message.
func (g Groups) kinds() string { return strings.Join(slices.Sorted(maps.Keys(g)), ", ") }

// ErrNotShown is returned by [Related] if the request contains no such group: either no rule has
// this name or resource, or Hookloop has not read the objects of a requirement yet.
// [RequireRelated] handles the second case for you.
var ErrNotShown = errors.New("not in the request")

// Related decodes related objects, by the name of their rule or by resource:
//
//	configMaps, err := hook.Related[corev1.ConfigMap](req, "configmaps.v1")
//
// It returns [ErrNotShown] if the request does not contain the group, and an error if Hookloop
// could not read the objects.
func Related[T any](req Request, group string) (map[string]*T, error) {
	found, ok := req.related()[group]
	if !ok {
		return nil, fmt.Errorf("related %q: %w; it has [%s]", group, ErrNotShown,
			strings.Join(slices.Sorted(maps.Keys(req.related())), ", "))
	}
	if found.Err != nil {
		return nil, fmt.Errorf("related %q: %w", group, found.Err)
	}
	return DecodeGroup[T](found.Objects)
}

// RequireRelated requires related objects and decodes them. Pass a pointer to the Requirements of
// your response; the rule is added there and must have a name. If shown is false, Hookloop has not
// read the objects yet. Return the response then: Hookloop ignores the rest of it, reads the
// objects, and calls the hook again.
func RequireRelated[T any](
	req Request,
	requirements *[]RelatedRule,
	rule RelatedRule,
) (objects map[string]*T, shown bool, err error) {
	if rule.Name == "" {
		return nil, false, fmt.Errorf("requirement on %s: Name is empty; expected the name of a group",
			kindKey(rule.APIVersion, rule.Resource))
	}
	*requirements = append(*requirements, rule)
	objects, err = Related[T](req, rule.Name)
	if errors.Is(err, ErrNotShown) {
		return nil, false, nil
	}
	return objects, err == nil, err
}

// DecodeGroup decodes all objects in a group. See [Decode] for the rules.
func DecodeGroup[T any](group Group) (map[string]*T, error) {
	out := make(map[string]*T, len(group))
	for key, o := range group {
		decoded, err := Decode[T](o)
		if err != nil {
			return nil, err
		}
		out[key] = decoded
	}
	return out, nil
}

// NewSyncRequest returns a request to test a hook with. Objects can be structs, maps or JSON, as in
// [Child].Object. The request gets a group for the kind of each child and for each kind in declare
// ("Pod.v1", or "Namespace.v1:Cluster" if the kind is cluster-scoped). Use hooktest.Check to
// validate the response.
func NewSyncRequest(parent any, children []any, declare ...string) (*SyncRequest, error) {
	return newRequest(parent, "children", children, declare)
}

// newRequest makes a request from objects. field is how messages call the children.
func newRequest(parent any, field string, children []any, declare []string) (*SyncRequest, error) {
	req := &SyncRequest{Children: Groups{}, Related: map[string]RelatedGroup{}}
	for _, key := range declare {
		req.Children[strings.TrimSuffix(key, ":Cluster")] = Group{}
	}
	var err error
	req.Parent, err = newObject(parent)
	if err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	for i, child := range children {
		o, err := newObject(child)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", field, i, err)
		}
		key := kindKey(o.APIVersion, o.Kind)
		if req.Children[key] == nil {
			req.Children[key] = Group{}
		}
		req.Children[key][o.key(req.Parent)] = o
	}
	return req, nil
}
