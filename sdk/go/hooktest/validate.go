package hooktest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/api/validate/content"
)

// clusterScope marks a declared kind as cluster-scoped: "Namespace.v1:Cluster".
const clusterScope = ":Cluster"

// kinds holds the declared kinds. The value is true if the kind is cluster-scoped.
type kinds map[string]bool

// declare parses kinds such as "Pod.v1" and "Namespace.v1:Cluster".
func declare(keys []string) (kinds, error) {
	declared := kinds{}
	for _, key := range keys {
		kind, cluster := strings.CutSuffix(key, clusterScope)
		if name, version, dot := strings.Cut(kind, "."); !dot || name == "" || version == "" || strings.Contains(kind, ":") {
			return nil, fmt.Errorf("kind %q: expected one such as Pod.v1, Deployment.apps/v1 or Namespace.v1%s",
				key, clusterScope)
		}
		declared[kind] = cluster
	}
	return declared, nil
}

// ref identifies a desired object, as in the engine.
type ref struct{ kind, namespace, name string }

func (r ref) String() string {
	if r.namespace == "" {
		return fmt.Sprintf("%s %q", r.kind, r.name)
	}
	return fmt.Sprintf("%s %q", r.kind, r.namespace+"/"+r.name)
}

// validator checks responses by the engine's rules, as far as they depend on nothing but the parent
// and the declared kinds.
type validator struct {
	field     string // children, attachments or outputs
	namespace string // the parent's namespace
	declared  kinds
	// controller is the controller's name and mapKey comes from a map hook's request. Both are
	// empty if the test does not set them.
	controller, mapKey string
	kept               map[ref]bool // outputs that a tombstone may keep; nil for other responses
}

// validate returns an error if the engine would reject the response. If a result is fatal, the
// engine reads only the requirements.
func (v *validator) validate(response proto.Message, objects []map[string]any, desired []*hookv1.DesiredObject) error {
	r, ok := response.(interface {
		GetDetails() *hookv1.ResponseDetails
	})
	if !ok {
		return fmt.Errorf("got a response of type %T, expected an answer to Sync or Finalize", response)
	}
	details := r.GetDetails()
	if err := validateRequirements(details.GetRequirements()); err != nil {
		return err
	}
	if slices.ContainsFunc(details.GetResults(), isFatal) {
		return nil
	}
	refs, err := v.children(objects)
	if err != nil {
		return err
	}
	if err := v.checkKept(refs); err != nil {
		return err
	}
	if err := v.dependencies(refs, desired); err != nil {
		return err
	}
	if p, patches := response.(patched); patches {
		if err := validatePatch(p); err != nil {
			return err
		}
	}
	return validateRemarks(details)
}

// children returns references to the desired objects, or an error for the first invalid one.
func (v *validator) children(objects []map[string]any) ([]ref, error) {
	refs := make([]ref, len(objects))
	first := make(map[ref]int, len(objects))
	for i, o := range objects {
		metadata, err := metadataOf(o)
		if err != nil {
			return nil, fmt.Errorf("%s[%d]: %w", v.field, i, err)
		}
		r := &refs[i]
		r.kind = fmt.Sprintf("%s.%s", o["kind"], o["apiVersion"])
		r.name, _ = metadata["name"].(string)
		r.namespace, _ = metadata["namespace"].(string)
		if err := v.child(r, metadata); err != nil {
			return nil, fmt.Errorf("%s[%d] %s: %w", v.field, i, r, err)
		}
		if earlier, twice := first[*r]; twice {
			return nil, fmt.Errorf("%s[%d] %s: is desired twice, first as %s[%d]; expected each object once",
				v.field, i, r, v.field, earlier)
		}
		first[*r] = i
	}
	return refs, nil
}

// child checks one desired object, and fills in the namespace if it is missing.
func (v *validator) child(r *ref, metadata map[string]any) error {
	if _, declared := v.declared[r.kind]; !declared {
		keys := strings.Join(slices.Sorted(maps.Keys(v.declared)), ", ")
		return fmt.Errorf("kind is not declared by the controller; expected one of [%s]", keys)
	}
	if err := v.place(r); err != nil {
		return err
	}
	return v.marks(metadata)
}

// place checks name and namespace. A missing namespace defaults to the parent's. Kinds are
// namespaced unless they are declared as cluster-scoped.
func (v *validator) place(r *ref) error {
	if r.name == "" {
		return errors.New("metadata.name is missing; expected a name")
	}
	if faults := content.IsPathSegmentName(r.name); len(faults) > 0 {
		return fmt.Errorf("metadata.name is %q: %s", r.name, faults[0])
	}
	if faults := content.IsPathSegmentName(r.namespace); len(faults) > 0 {
		return fmt.Errorf("metadata.namespace is %q: %s", r.namespace, faults[0])
	}
	cluster := v.declared[r.kind]
	switch {
	case cluster && v.namespace != "":
		return errors.New("is cluster-scoped; expected a namespaced object, because the parent is in a namespace")
	case cluster && r.namespace != "":
		return fmt.Errorf("metadata.namespace is %q; expected none, because the kind is cluster-scoped", r.namespace)
	case cluster:
		return nil
	case r.namespace == "" && v.namespace == "":
		return fmt.Errorf("metadata.namespace is missing; expected one, because the parent is cluster-scoped "+
			"(if this kind is, too, declare it as %q)", r.kind+clusterScope)
	case r.namespace == "":
		r.namespace = v.namespace
	case v.namespace != "" && r.namespace != v.namespace:
		return fmt.Errorf("metadata.namespace is %q; expected %q, the parent's", r.namespace, v.namespace)
	}
	return nil
}

// metadataOf returns an object's metadata, or an error if a known field has the wrong type. Field
// names are case-sensitive.
func metadataOf(o map[string]any) (map[string]any, error) {
	metadata, isObject := o["metadata"].(map[string]any)
	if !isObject {
		return nil, fmt.Errorf("%s.%s has no metadata.name", o["kind"], o["apiVersion"])
	}
	for _, field := range []string{"name", "namespace"} {
		if _, isString := metadata[field].(string); !isString && metadata[field] != nil {
			return nil, fmt.Errorf("metadata.%s: expected a string", field)
		}
	}
	for _, field := range []string{"labels", "annotations"} {
		values, isObject := metadata[field].(map[string]any)
		if !isObject && metadata[field] != nil {
			return nil, fmt.Errorf("metadata.%s: expected an object with strings as values", field)
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			if _, isString := values[key].(string); !isString && values[key] != nil {
				return nil, fmt.Errorf("metadata.%s[%q]: expected a string", field, key)
			}
		}
	}
	finalizers, isList := metadata["finalizers"].([]any)
	notString := func(v any) bool { _, isString := v.(string); return !isString && v != nil }
	if !isList && metadata["finalizers"] != nil || slices.ContainsFunc(finalizers, notString) {
		return nil, errors.New("metadata.finalizers: expected an array of strings")
	}
	return metadata, nil
}

// dependencies checks that objects depend only on other desired objects, and that there is no
// cycle.
func (v *validator) dependencies(refs []ref, objects []*hookv1.DesiredObject) error {
	places := make(map[ref]int, len(refs))
	for i, r := range refs {
		places[r] = i
	}
	edges := make([][]int, len(refs))
	for i, o := range objects {
		for _, d := range o.GetDependsOn() {
			on := ref{kind: d.GetKind() + "." + d.GetApiVersion(), namespace: d.GetNamespace(), name: d.GetName()}
			if cluster, declared := v.declared[on.kind]; declared && !cluster && on.namespace == "" {
				on.namespace = v.namespace
			}
			place, desired := places[on]
			switch {
			case !desired:
				return fmt.Errorf(
					"%s[%d] %s: depends on %s, which is not desired; expected another of the desired objects",
					v.field, i, refs[i], on)
			case place == i:
				return fmt.Errorf("%s[%d] %s: depends on itself; expected another of the desired objects", v.field, i, refs[i])
			}
			edges[i] = append(edges[i], place)
		}
	}
	done := make([]bool, len(refs))
	for i := range refs {
		if circle := findCircle(edges, done, nil, i); circle != nil {
			names := make([]string, len(circle))
			for n, place := range circle {
				names[n] = refs[place].String()
			}
			return fmt.Errorf("%s[%d] %s: the dependencies go in a circle: %s",
				v.field, i, refs[i], strings.Join(names, " → "))
		}
	}
	return nil
}

// findCircle returns a cycle that can be reached from a node, with its first node repeated at the
// end, or nil if there is none.
func findCircle(edges [][]int, done []bool, path []int, at int) []int {
	if begin := slices.Index(path, at); begin >= 0 {
		return append(slices.Clone(path[begin:]), at)
	}
	if done[at] {
		return nil
	}
	path = append(path, at)
	for _, next := range edges[at] {
		if circle := findCircle(edges, done, path, next); circle != nil {
			return circle
		}
	}
	done[at] = true
	return nil
}
