package mapping

import (
	"cmp"
	"slices"

	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
)

// inputID names an input: the place of its resource in Shape.inputs, and its name.
type inputID struct {
	resource        int
	namespace, name string
}

func compareInputs(a, b inputID) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name))
}

// keyOf returns the map key of an input.
func (s *Shape) keyOf(id inputID) string {
	gvk := s.inputs[id.resource].GVK
	return MapKey{Group: gvk.Group, Kind: gvk.Kind, Namespace: id.namespace, Name: id.name}.String()
}

// listInputs returns the inputs of a parent in order.
func (s *Shape) listInputs(r view.Reader, parent *object.Object) ([]inputID, error) {
	sel, err := s.selectionOf(parent)
	if err != nil {
		return nil, err
	}
	var ids []inputID
	in := map[string]bool{} // namespaces that are selected or not
	for i, resource := range s.inputs {
		v, err := r.View(resource)
		if err != nil {
			return nil, err
		}
		for o := range v.List(sel.namespace).All() {
			if !sel.matches(o) {
				continue
			}
			selected, known := in[o.Namespace()]
			if !known {
				selected, err = s.inNamespace(r, &sel, o.Namespace())
				if err != nil {
					return nil, err
				}
				in[o.Namespace()] = selected
			}
			if selected {
				ids = append(ids, inputID{i, o.Namespace(), o.Name()})
			}
		}
	}
	slices.SortFunc(ids, compareInputs)
	return ids, nil
}
