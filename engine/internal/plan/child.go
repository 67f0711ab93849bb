package plan

import (
	"bytes"
	"encoding/json"
	"hash/maphash"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

// Child is one validated desired child. Its body is decoded on first use. The children of the last
// answer stay in memory (Previous), so that a Child has no field that most children do not need.
type Child struct {
	// Hash identifies the desired state in Converged.
	Hash uint64
	Kind *ChildKind

	namespace, name string
	// order is nil if the answer has no state of the child and no dependencies.
	order *childOrder
	// scope is nil between syncs.
	scope *Scope
	// item is the item of the answer, and itemHash its hash. Previous.Compact drops the item; it is
	// here again when an answer has an equal one.
	item     json.RawMessage
	itemHash uint64
	// compact reports that the object's JSON (object.Raw) is the item.
	compact bool
}

// childOrder is the place of a child among the others.
type childOrder struct {
	// ready and dependsOn are from the child's ChildState.
	ready     *bool
	dependsOn []hook.Dependency
	// depends is the value of DependsOnAnnotation, empty for none. It is nil if the answer has no
	// dependencies; then the annotation stays as it is.
	depends *string
}

// Ref names the child.
func (c Child) Ref() object.Ref {
	return object.Ref{GVK: c.Kind.Resource.GVK, Namespace: c.namespace, Name: c.name}
}

// is reports whether ref names the child.
func (c *Child) is(ref object.Ref) bool {
	return c.name == ref.Name && c.namespace == ref.Namespace && c.Kind.Resource.GVK == ref.GVK
}

// DependsOn returns the child's dependencies.
func (c Child) DependsOn() []hook.Dependency {
	if c.order == nil {
		return nil
	}
	return c.order.dependsOn
}

// Ready returns the readiness that the hook reports; nil if it reports none.
func (c Child) Ready() *bool {
	if c.order == nil {
		return nil
	}
	return c.order.ready
}

// newChild keeps no more than the item. All children of a parent have the same stamps, so the hash
// leaves them out.
func newChild(ref object.Ref, item json.RawMessage, o *object.Object, declared *ChildKind, scope *Scope) Child {
	return Child{
		namespace: ref.Namespace, name: ref.Name, Hash: o.Hash(), Kind: declared, scope: scope,
		item: item, itemHash: maphash.Bytes(seed, item), compact: bytes.Equal(o.Raw(), item),
	}
}

// raw returns the object's JSON.
func (c Child) raw() ([]byte, error) {
	if c.compact {
		return c.item, nil
	}
	o, err := object.Decode(c.item)
	if err != nil {
		return nil, err
	}
	return o.Raw(), nil
}

// Map returns the desired state as the last-applied annotation has it: with namespace and stamps,
// without owner reference and without the fields that an apply never changes (merge.Strip). The
// caller owns the map.
func (c Child) Map() (map[string]any, error) {
	m, err := c.whole()
	if err != nil {
		return nil, err
	}
	merge.Strip(m)
	return m, nil
}

// whole returns the child as the hook answered it, with namespace and stamps. Its name is the
// validated one, even if the JSON has other fields that look like a name.
func (c Child) whole() (map[string]any, error) {
	raw, err := c.raw()
	if err != nil {
		return nil, err
	}
	m, err := object.DecodeMap(raw)
	if err != nil {
		return nil, err
	}
	metadata := objectField(m, "metadata")
	metadata["name"] = c.name
	if c.namespace != "" {
		metadata["namespace"] = c.namespace
	}
	stamp(metadata, "labels", c.scope.Labels)
	stamp(metadata, "annotations", c.scope.Annotations)
	c.annotateDepends(metadata)
	return m, nil
}

// stamp sets the values of absent keys.
func stamp(metadata map[string]any, field string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	target := objectField(metadata, field)
	for key, value := range values {
		if _, present := target[key]; !present {
			target[key] = value
		}
	}
}

// objectField returns a field that is an object. It replaces an absent or null field, and one of
// another type, by an empty object.
func objectField(m map[string]any, field string) map[string]any {
	present, ok := m[field].(map[string]any)
	if !ok {
		present = map[string]any{}
		m[field] = present
	}
	return present
}
