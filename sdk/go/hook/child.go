package hook

import (
	"encoding/json"
	"fmt"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// Child is a desired object: a child of a composite's parent, an attachment of a decorator's
// object, or an output of a map hook.
type Child struct {
	// Object marshals to the JSON of an object with apiVersion, kind and metadata.name: a map, a typed
	// object with its TypeMeta set, a json.RawMessage, or an Encoded object. Fields that it leaves out
	// stay as they are.
	Object any
	// DependsOn lists desired objects that must exist and be ready before this one is created. This
	// one is deleted before them. Function DependsOn makes the list.
	DependsOn []Dependency
	// Ready overrides whether the observed object is ready, for the objects that depend on this one.
	// If it is nil, the condition that a Dependency names decides.
	Ready *bool
}

// Dependency names another desired object.
type Dependency struct {
	// APIVersion, Kind and Name are required. An empty Namespace is the parent's.
	APIVersion, Kind, Namespace, Name string
	// Condition is the type of a condition that must be True in the object's status. If it is empty,
	// the object must exist.
	Condition string
}

// DependsOn returns the dependencies on one desired object, one for each condition, or one without
// a condition. The object is what Child.Object takes; one without an identity fails when the
// response is encoded.
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

// isPlain reports whether the child is no more than its object.
func (c Child) isPlain() bool { return c.Ready == nil && len(c.DependsOn) == 0 }

// encode encodes a child. data is the JSON of its object; nil: not marshalled yet. The error names
// the field at fault.
func (c Child) encode(data []byte) (*hookv1.DesiredObject, error) {
	out := &hookv1.DesiredObject{Encoding: hookv1.Encoding_ENCODING_JSON}
	if c.Ready != nil { // the message is kept longer than the function's variable has this value
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
