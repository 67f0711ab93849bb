package kit

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Object is an object that a test is about to apply. Make it with [Kit.Object], add the fields that
// the test is about, and call [Object.Apply].
type Object struct {
	kit    *Kit
	fields map[string]any
}

// Object returns an object of a kind, which is written as in [Kit.Lookup]. A namespaced object goes
// into the kit's namespace, unless [Object.In] names another.
//
//	k.Object("v1/Secret", "later").Label("app", "web").Set("data.key", "dmFsdWU=").Apply()
func (k *Kit) Object(kind, name string) *Object {
	gvk := k.gvk(kind)
	apiVersion, kindName := gvk.ToAPIVersionAndKind()
	return &Object{kit: k, fields: map[string]any{
		"apiVersion": apiVersion,
		"kind":       kindName,
		"metadata":   map[string]any{"name": name},
	}}
}

// In puts the object into another namespace than the kit's.
func (o *Object) In(namespace string) *Object {
	return o.Set("metadata.namespace", namespace)
}

// Label adds a label. The key may contain dots.
func (o *Object) Label(key, value string) *Object {
	return o.mark("labels", key, value)
}

// Annotation adds an annotation. The key may contain dots.
func (o *Object) Annotation(key, value string) *Object {
	return o.mark("annotations", key, value)
}

func (o *Object) mark(field, key, value string) *Object {
	metadata := o.fields["metadata"].(map[string]any)
	marks, ok := metadata[field].(map[string]any)
	if !ok {
		marks = map[string]any{}
		metadata[field] = marks
	}
	marks[key] = value
	return o
}

// Set sets a field by its dotted path, and makes the objects on the way. The value is anything that
// encodes to JSON.
func (o *Object) Set(path string, value any) *Object {
	parts := strings.Split(path, ".")
	last := len(parts) - 1
	at := o.fields
	for _, part := range parts[:last] {
		next, ok := at[part].(map[string]any)
		if !ok {
			next = map[string]any{}
			at[part] = next
		}
		at = next
	}
	at[parts[last]] = value
	return o
}

// Apply applies the object as a user with kubectl would (server-side apply), or fails the test.
func (o *Object) Apply() {
	o.kit.Helper()
	data, err := json.Marshal(o.fields) // unstructured objects hold no int, only int64
	if err != nil {
		o.kit.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := u.UnmarshalJSON(data); err != nil {
		o.kit.Fatal(err)
	}
	if err := o.kit.TryApply(u); err != nil {
		o.kit.Fatalf("apply %s %s: %v", u.GetKind(), u.GetName(), err)
	}
}
