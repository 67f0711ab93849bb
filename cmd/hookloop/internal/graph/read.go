package graph

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/hookloop/hookloop/cmd/hookloop/internal/readiness"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/printable"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// conditions returns status.conditions of an object; nil if it has none in the usual form.
func conditions(o *object.Object) []metav1.Condition {
	all := readiness.Conditions(o)
	for i := range all {
		c := &all[i]
		c.Type, c.Reason, c.Message = clean(c.Type), clean(c.Reason), clean(c.Message)
		c.Status = metav1.ConditionStatus(clean(string(c.Status)))
	}
	return all
}

// maxText bounds names and the texts of conditions, in characters.
const maxText = 300

// clean makes a text of the cluster fit for a terminal.
func clean(s string) string { return printable.Text(s, maxText) }

// Dependency is an object that another one names in its field deps.
type Dependency struct {
	// GVK is the kind that the entry names; empty if it names none.
	GVK schema.GroupVersionKind
	// Field is the name of the entry: logService.
	Field string
	// Namespace and Name are the entry's; an empty Namespace is that of the object itself.
	Namespace, Name string
}

// entry is one entry of the field deps: an object of which only the identity is stored.
type entry struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Namespace  string `json:"namespace"`
	Name       string `json:"name"`
	Metadata   struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
	} `json:"metadata"`
}

// Dependencies returns the objects that an object names in its top-level field deps, in the order
// of the fields' names. Entries that are no objects with a name are left out.
func Dependencies(o *object.Object) []Dependency {
	data, ok := o.Field("deps")
	if !ok {
		return nil
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil // another meaning of the name
	}
	var all []Dependency
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		for _, e := range entries(fields[field]) {
			all = append(all, e.dependency(field, o))
		}
	}
	return all
}

// entries returns the entries of one field, which holds an object or a list of them.
func entries(data json.RawMessage) []entry {
	var many []entry
	if json.Unmarshal(data, &many) != nil {
		var one entry
		if json.Unmarshal(data, &one) != nil {
			return nil
		}
		many = []entry{one}
	}
	return slices.DeleteFunc(many, func(e entry) bool { return e.Name == "" && e.Metadata.Name == "" })
}

func (e entry) dependency(field string, of *object.Object) Dependency {
	d := Dependency{Field: field, Name: e.Metadata.Name, Namespace: e.Metadata.Namespace}
	if d.Name == "" {
		d.Name, d.Namespace = e.Name, e.Namespace
	}
	if d.Namespace == "" {
		d.Namespace = of.Namespace()
	}
	if e.Kind != "" {
		d.GVK = schema.FromAPIVersionAndKind(e.APIVersion, e.Kind)
	}
	return d
}
