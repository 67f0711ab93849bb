package hook

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// encodeStatus returns the JSON of a status, or nil for a nil status.
func encodeStatus(status any) ([]byte, error) {
	data, err := json.Marshal(status)
	if err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	switch {
	case string(data) == "null":
		return nil, nil
	case data[0] != '{':
		return nil, fmt.Errorf("status: %T marshals to %.40s, expected a JSON object", status, data)
	}
	return data, nil
}

// identity holds the required fields of a desired object.
type identity struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		UID       string `json:"uid"`
		Version   string `json:"resourceVersion"`
	} `json:"metadata"`
}

// encodeDesired marshals a desired object and removes empty fields that Go types always marshal.
func encodeDesired(v any) ([]byte, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return checkDesired(v, data)
}

// checkDesired does what encodeDesired does, for a value that was already marshalled to data.
func checkDesired(v any, data []byte) ([]byte, error) {
	data, id, err := clean(data)
	switch {
	case err != nil:
		return nil, err
	case id.APIVersion == "" || id.Kind == "":
		return nil, fmt.Errorf(
			"%s %q (%T) has apiVersion %q; expected both kind and apiVersion (TypeMeta of a typed object)",
			orUnknown(id.Kind), id.Metadata.Name, v, id.APIVersion)
	case id.Metadata.Name == "":
		return nil, fmt.Errorf("%s has no metadata.name", kindKey(id.APIVersion, id.Kind))
	}
	return data, nil
}

func orUnknown(kind string) string {
	if kind == "" {
		return "object without a kind"
	}
	return kind
}

// newObject makes an observed object for tests of hooks.
func newObject(v any) (Object, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return Object{}, err
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return Object{}, err
	}
	if id.APIVersion == "" || id.Kind == "" || id.Metadata.Name == "" {
		return Object{}, fmt.Errorf("%T needs apiVersion, kind and metadata.name", v)
	}
	return Object{
		APIVersion: id.APIVersion, Kind: id.Kind, Namespace: id.Metadata.Namespace, Name: id.Metadata.Name,
		UID: id.Metadata.UID, ResourceVersion: id.Metadata.Version, JSON: slices.Clip(data),
	}, nil
}

// clean removes an empty status, and creationTimestamp: null from all metadata. Typed objects
// always marshal both, and Hookloop would apply them as desired fields. Other JSON is returned
// unchanged.
func clean(data []byte) ([]byte, identity, error) {
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return nil, id, err
	}
	if string(data) == "null" {
		return nil, id, errors.New("is nil; expected an object")
	}
	if !bytes.Contains(data, []byte(`"creationTimestamp"`)) && !bytes.Contains(data, []byte(`"status"`)) {
		return data, id, nil
	}
	var tree map[string]any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&tree); err != nil {
		return nil, id, err
	}
	if status, ok := tree["status"]; ok && empty(status) {
		delete(tree, "status")
	}
	dropTimestamps(tree)
	data, err := json.Marshal(tree)
	return data, id, err
}

// empty reports whether a value is null, or an object whose members are all empty.
func empty(v any) bool {
	members, ok := v.(map[string]any)
	if !ok {
		return v == nil
	}
	for _, member := range members {
		if !empty(member) {
			return false
		}
	}
	return true
}

// dropTimestamps removes metadata.creationTimestamp: null from the object and from its templates.
func dropTimestamps(v any) {
	switch v := v.(type) {
	case map[string]any:
		if metadata, ok := v["metadata"].(map[string]any); ok {
			if stamp, ok := metadata["creationTimestamp"]; ok && stamp == nil {
				delete(metadata, "creationTimestamp")
			}
		}
		for _, member := range v {
			dropTimestamps(member)
		}
	case []any:
		for _, item := range v {
			dropTimestamps(item)
		}
	}
}
