package verify

import (
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime"
)

// sample returns the fields of a made-up object: those of relatedsamples.yaml or, for a kind with a
// CustomResourceDefinition, the required ones and the defaults.
func (s *subject) sample(r object.Resource) map[string]any {
	if known, found := samplesByKind()[object.KindString(r.GVK)]; found {
		m := integers(known).(map[string]any)
		setBuiltinDefaults(r.GVK, m)
		return m
	}
	schema := s.resources.schemas[r.GVK]
	m, _ := sampleOf(schema, 0).(map[string]any)
	if m == nil {
		m = map[string]any{}
	}
	fillDefaults(m, schema)
	return m
}

// maxSampleDepth bounds the levels of a made-up value.
const maxSampleDepth = 20

// sampleOf returns a value that a schema allows, with the required fields alone.
func sampleOf(schema map[string]any, depth int) any {
	if standard, has := schema["default"]; has {
		return runtime.DeepCopyJSONValue(standard)
	}
	if values, ok := schema["enum"].([]any); ok && len(values) > 0 {
		return values[0]
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return int64(1)
	}
	switch schema["type"] {
	case "string":
		if schema["format"] == "date-time" {
			return "2026-01-01T00:00:00Z"
		}
		return "text"
	case "integer", "number":
		if least, has := schema["minimum"]; has {
			return integer(least)
		}
		return int64(1)
	case "boolean":
		return false
	case "array":
		items, _ := schema["items"].(map[string]any)
		if least, has := schema["minItems"]; has && integer(least) != int64(0) && depth < maxSampleDepth {
			return []any{sampleOf(items, depth+1)}
		}
		return []any{}
	}
	return sampleFields(schema, depth)
}

// sampleFields returns an object with the required fields of a schema.
func sampleFields(schema map[string]any, depth int) map[string]any {
	fields := map[string]any{}
	properties, _ := schema["properties"].(map[string]any)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		if text, ok := name.(string); ok && depth < maxSampleDepth {
			of, _ := properties[text].(map[string]any)
			fields[text] = sampleOf(of, depth+1)
		}
	}
	return fields
}

// integers returns a copy of a value of YAML with integers in place of floats.
func integers(value any) any {
	switch v := value.(type) {
	case map[string]any:
		changed := make(map[string]any, len(v))
		for key, inner := range v {
			changed[key] = integers(inner)
		}
		return changed
	case []any:
		changed := make([]any, len(v))
		for i, inner := range v {
			changed[i] = integers(inner)
		}
		return changed
	}
	return integer(value)
}
