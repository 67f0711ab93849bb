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

// Decode reads an observed object into a T: a struct with JSON tags, or a map[string]any. As in
// Kubernetes, and unlike encoding/json, case counts: each field needs its tag, such as
// `json:"spec"`. A field that would stay zero because its name differs from a key of the object in
// case only is an error. Integers in untyped fields are int64, so that they keep all their digits.
// Parent, Children, Related and DecodeGroup decode in the same way.
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

// Parent decodes the parent, as Decode does.
func Parent[T any](req *SyncRequest) (*T, error) { return Decode[T](req.Parent) }

// Scheme maps kinds to Go types. A *runtime.Scheme of k8s.io/apimachinery is a Scheme.
type Scheme interface {
	AllKnownTypes() map[schema.GroupVersionKind]reflect.Type
}

// Children decodes the children of the kind for which the scheme has the type T, by name. It returns
// an error if the controller does not declare exactly one such kind, or if an object does not decode.
// ChildrenOf needs no scheme.
func Children[T any](req *SyncRequest, scheme Scheme) (map[string]*T, error) {
	t, types := reflect.TypeFor[T](), scheme.AllKnownTypes()
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

// ChildrenOf decodes the children of one kind, by name: ChildrenOf[appsv1.Deployment](req,
// "Deployment.apps/v1"). It returns an error if the controller does not declare the kind, or if an
// object does not decode.
func ChildrenOf[T any](req *SyncRequest, kind string) (map[string]*T, error) {
	group, declared := req.Children[kind]
	if !declared {
		return nil, fmt.Errorf("children of kind %q: expected one of the declared kinds [%s]", kind, req.Children.kinds())
	}
	return DecodeGroup[T](group)
}

// kinds returns the kinds of the groups, sorted, for messages.
func (g Groups) kinds() string { return strings.Join(slices.Sorted(maps.Keys(g)), ", ") }

// ErrNotShown is the error of Related for a group that is not in the request: no rule has this name
// or resource, or its objects are required by a response and have not been shown yet.
// RequireRelated is for the second case.
var ErrNotShown = errors.New("not in the request")

// Related decodes a group of related objects, by the name of its rules or by its resource:
// Related[corev1.ConfigMap](req, "configmaps.v1"). The error is ErrNotShown, or why the objects are
// not known.
func Related[T any](req *SyncRequest, group string) (map[string]*T, error) {
	found, ok := req.Related[group]
	if !ok {
		return nil, fmt.Errorf("related %q: %w; it has [%s]", group, ErrNotShown,
			strings.Join(slices.Sorted(maps.Keys(req.Related)), ", "))
	}
	if found.Err != nil {
		return nil, fmt.Errorf("related %q: %w", group, found.Err)
	}
	return DecodeGroup[T](found.Objects)
}

// RequireRelated adds a rule to the requirements of a response (&resp.Requirements) and decodes the
// objects that it selects. If shown is false, they have not been shown yet: return the response as
// it is; Hookloop writes nothing of it and asks again with the objects. The rule needs a name.
func RequireRelated[T any](
	req *SyncRequest,
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

// DecodeGroup decodes all objects of a group.
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

// NewSyncRequest makes a request from objects, for tests of a hook: structs, maps or JSON as in
// SyncResponse.Children. Each child's kind gets a group; declare adds groups of kinds ("Pod.v1", or
// "Namespace.v1:Cluster" as in package hooktest) that have no object. hooktest.Check checks the
// answer.
func NewSyncRequest(parent any, children []any, declare ...string) (*SyncRequest, error) {
	req := &SyncRequest{Children: Groups{}, Related: map[string]RelatedGroup{}}
	for _, key := range declare {
		req.Children[strings.TrimSuffix(key, ":Cluster")] = Group{}
	}
	var err error
	if req.Parent, err = newObject(parent); err != nil {
		return nil, fmt.Errorf("parent: %w", err)
	}
	for i, child := range children {
		o, err := newObject(child)
		if err != nil {
			return nil, fmt.Errorf("children[%d]: %w", i, err)
		}
		key := kindKey(o.APIVersion, o.Kind)
		if req.Children[key] == nil {
			req.Children[key] = Group{}
		}
		req.Children[key][o.key(req.Parent)] = o
	}
	return req, nil
}
