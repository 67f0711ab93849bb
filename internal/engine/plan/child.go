package plan

import (
	"bytes"
	"encoding/json"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
)

// Child is one desired child: validated, its identity known, its body not decoded before somebody
// needs it.
type Child struct {
	Ref object.Ref
	// Hash stands for the desired state in Memory.
	Hash uint64
	Kind ChildKind
	// Ready and DependsOn are the child's State.
	Ready     *bool
	DependsOn []hook.Dependency

	raw   []byte
	scope *Scope
	item  json.RawMessage // what it was read from
	// depends is DependsOnAnnotation, empty for none; nil in an answer without dependencies, which
	// leaves the annotation alone.
	depends *string
}

// newChild keeps bytes only: those of the item where the object has the same, so that they are held
// once. The scope's stamps are the same for all children of a parent, so that the hash needs no
// more.
func newChild(ref object.Ref, item json.RawMessage, o *object.Object, declared ChildKind, scope *Scope) Child {
	raw := o.Raw()
	if bytes.Equal(raw, item) {
		raw = item
	}
	return Child{Ref: ref, Hash: o.Hash(), Kind: declared, raw: raw, scope: scope, item: item}
}

// Map is the desired state as it is written to the last-applied annotation: namespace and stamps
// put in, no owner reference, nothing that an apply never changes (merge.Strip). The caller owns
// the map.
func (c Child) Map() (map[string]any, error) {
	m, err := c.whole()
	if err != nil {
		return nil, err
	}
	merge.Strip(m)
	return m, nil
}

// whole is the child as the hook gave it, namespace and stamps put in. The name is the one that was
// validated, whatever else in the JSON may look like a name.
func (c Child) whole() (map[string]any, error) {
	m, err := object.DecodeMap(c.raw)
	if err != nil {
		return nil, err
	}
	metadata := objectField(m, "metadata")
	metadata["name"] = c.Ref.Name
	if c.Ref.Namespace != "" {
		metadata["namespace"] = c.Ref.Namespace
	}
	stamp(metadata, "labels", c.scope.Labels)
	stamp(metadata, "annotations", c.scope.Annotations)
	c.annotateDepends(metadata)
	return m, nil
}

// stamp puts values in where the key is absent.
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

// objectField returns a field that is an object; an absent, null or other one is replaced by an empty
// object.
func objectField(m map[string]any, field string) map[string]any {
	present, ok := m[field].(map[string]any)
	if !ok {
		present = map[string]any{}
		m[field] = present
	}
	return present
}
