package verify

import "k8s.io/apimachinery/pkg/runtime"

// fillDefaults sets the absent fields of an object that have a default in the schema of a
// CustomResourceDefinition, as the API server does before it stores the object.
func fillDefaults(value any, schema map[string]any) {
	switch v := value.(type) {
	case map[string]any:
		fillFields(v, schema)
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range v {
			fillDefaults(item, items)
		}
	}
}

func fillFields(fields map[string]any, schema map[string]any) {
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		of, _ := property.(map[string]any)
		standard, has := of["default"]
		if _, set := fields[name]; !set && has {
			fields[name] = runtime.DeepCopyJSONValue(standard)
		}
	}
	others, _ := schema["additionalProperties"].(map[string]any)
	for name, value := range fields {
		if of, known := properties[name].(map[string]any); known {
			fillDefaults(value, of)
		} else {
			fillDefaults(value, others)
		}
	}
}
