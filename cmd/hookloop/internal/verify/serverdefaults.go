package verify

import (
	_ "embed"
	"sync"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// builtinDefaults are the usual defaults of built-in kinds, as the API server sets them.
//
//go:embed serverdefaults.yaml
var builtinDefaults []byte

// defaultsByKind parses builtinDefaults: Kind.group/version to the fields with a default. A list
// with one item is that of each item.
var defaultsByKind = sync.OnceValue(func() map[string]any {
	var all map[string]any
	if err := yaml.Unmarshal(builtinDefaults, &all); err != nil {
		panic("verify: serverdefaults.yaml: " + err.Error()) // a file of this package
	}
	return all
})

// setBuiltinDefaults sets the absent fields of an object of a built-in kind.
func setBuiltinDefaults(gvk schema.GroupVersionKind, m map[string]any) {
	if defaults, found := defaultsByKind()[object.KindString(gvk)].(map[string]any); found {
		fillAbsent(m, defaults)
	}
}

// fillAbsent sets the absent fields of an object. It does not add objects that have no values of
// their own, such as a container's ports.
func fillAbsent(m, defaults map[string]any) {
	for field, standard := range defaults {
		present, there := m[field]
		switch standard := standard.(type) {
		case map[string]any:
			if inner, ok := present.(map[string]any); ok {
				fillAbsent(inner, standard)
			} else if !there && len(standard) == 0 {
				m[field] = map[string]any{}
			}
		case []any:
			items, _ := present.([]any)
			of, isObject := standard[0].(map[string]any)
			for _, item := range items {
				if inner, ok := item.(map[string]any); ok && isObject {
					fillAbsent(inner, of)
				}
			}
		default:
			if !there {
				m[field] = runtime.DeepCopyJSONValue(integer(standard))
			}
		}
	}
}

// integer returns a number of YAML, which is a float, as the integer that it is.
func integer(value any) any {
	if f, ok := value.(float64); ok {
		return int64(f)
	}
	return value
}
