package hook

import (
	"encoding/json"
	"fmt"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// Child is an object that should exist: a child of a composite's parent, an attachment to a
// decorator's object, or an output of a map hook.
type Child struct {
	// Object is anything that marshals to JSON with apiVersion, kind and metadata.name: a map, a
	// typed object with TypeMeta, a json.RawMessage, or an object that [Encode] returned. Hookloop
	// leaves fields that it does not set to their owners.
	Object any
	// DependsOn lists desired objects that must exist and be ready before Hookloop creates this
	// one. Hookloop deletes them only after this one. Use the function [DependsOn] to make the
	// list.
	DependsOn []Dependency
	// Ready tells Hookloop whether this object is ready, for objects that depend on it. If it is
	// nil, Hookloop looks at the condition that the [Dependency] names.
	Ready *bool
}

// Dependency refers to another desired object in the same response.
type Dependency struct {
	// APIVersion, Kind and Name are required. If Namespace is empty, the parent's is used.
	APIVersion, Kind, Namespace, Name string
	// Condition is a condition type that must be True in the object's status, such as "Available".
	// If it is empty, the object only has to exist.
	Condition string
}

// DependsOn makes the list for [Child].DependsOn. It returns one dependency on the object for each
// condition, or a single one if no condition is given. The object can be anything that Child.Object
// accepts. If it has no kind and name, encoding the response will fail.
func DependsOn(object any, conditions ...string) []Dependency {
	var id identity
	if data, err := json.Marshal(object); err != nil || json.Unmarshal(data, &id) != nil {
		id = identity{}
	}
	if len(conditions) == 0 {
		conditions = []string{""}
	}
	out := make([]Dependency, len(conditions))
	for i, condition := range conditions {
		out[i] = Dependency{
			APIVersion: id.APIVersion, Kind: id.Kind, Namespace: id.Metadata.Namespace, Name: id.Metadata.Name,
			Condition: condition,
		}
	}
	return out
}

// isPlain reports whether only Object is set.
func (c Child) isPlain() bool { return c.Ready == nil && len(c.DependsOn) == 0 }

// encode encodes a child. data is the JSON of its object, or nil if the object was not marshalled
// yet. An error names the field at fault.
func (c Child) encode(data []byte) (*hookv1.DesiredObject, error) {
	out := &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON}
	if c.Ready != nil { // copied, because the function may change its variable later
		out.Ready = proto.Bool(*c.Ready)
	}
	for i, d := range c.DependsOn {
		if d.APIVersion == "" || d.Kind == "" || d.Name == "" {
			return nil, fmt.Errorf("DependsOn[%d] has apiVersion %q, kind %q and name %q, expected those of a desired object",
				i, d.APIVersion, d.Kind, d.Name)
		}
		out.DependsOn = append(out.DependsOn, &hookv1.Dependency{
			ApiVersion: d.APIVersion, Kind: d.Kind, Namespace: d.Namespace, Name: d.Name, Condition: d.Condition,
		})
	}
	var err error
	if data == nil {
		out.Body, err = encodeDesired(c.Object)
	} else {
		out.Body, err = checkDesired(c.Object, data)
	}
	return out, err
}
