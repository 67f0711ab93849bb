package mapping

import (
	"cmp"
	"iter"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/view"
)

// Parts are the parts of a parent at one time: its inputs, and the groups of outputs that have lost
// their input. It holds their names, not the objects.
type Parts struct {
	shape  *Shape
	inputs []inputID
	// detached are the parts without an input, in order.
	detached []string
}

// inputID names an input: the place of its resource in Shape.inputs, and its name.
type inputID struct {
	resource        int
	namespace, name string
}

func compareInputs(a, b inputID) int {
	return cmp.Or(cmp.Compare(a.resource, b.resource), cmp.Compare(a.namespace, b.namespace),
		cmp.Compare(a.name, b.name))
}

// Parts lists the parts of a parent. Those that cannot be decided, because the API server does not
// serve their input resource, are left out. The error is a *shape.ParentError about the selection
// of the parent, or a *view.Error if inputs or outputs are not known.
func (s *Shape) Parts(r view.Reader, parent *object.Object) (*Parts, error) {
	inputs, err := s.listInputs(r, parent)
	if err != nil {
		return nil, err
	}
	p := &Parts{shape: s, inputs: inputs}
	p.detached, err = s.listDetached(r, parent, inputs)
	return p, err
}

// Len returns the number of parts.
func (p *Parts) Len() int { return len(p.inputs) + len(p.detached) }

// Detached returns the number of parts without an input. They come last.
func (p *Parts) Detached() int { return len(p.detached) }

// Part returns the part at a place: the Part of its hook.Key. The order is that of the declared
// input resources, then of namespace and name.
func (p *Parts) Part(i int) string {
	if i < len(p.inputs) {
		return p.shape.keyOf(p.inputs[i])
	}
	return p.detached[i-len(p.inputs)]
}

// All yields the parts in order.
func (p *Parts) All() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.Len() {
			if !yield(p.Part(i)) {
				return
			}
		}
	}
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
				if selected, err = s.inNamespace(r, &sel, o.Namespace()); err != nil {
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

// listDetached returns the parts of outputs without an input, in order.
func (s *Shape) listDetached(r view.Reader, parent *object.Object, inputs []inputID) ([]string, error) {
	found := map[string]struct{}{}
	var parts []string
	for _, kind := range s.outputKinds {
		v, err := r.View(kind.Resource)
		if err != nil {
			return nil, err
		}
		for o := range v.OwnedBy(parent.UID()).All() {
			part, ok := s.partOf(o)
			if _, seen := found[part]; !ok || seen || s.hasInput(part, inputs) {
				continue
			}
			found[part] = struct{}{}
			if key, err := ParseMapKey(part); err == nil && s.undecided(parent, key) != nil {
				continue
			}
			parts = append(parts, part)
		}
	}
	slices.Sort(parts)
	return parts, nil
}

// hasInput reports whether a part is that of one of the inputs, which are in order.
func (s *Shape) hasInput(part string, inputs []inputID) bool {
	key, err := ParseMapKey(part)
	if err != nil {
		return false
	}
	for i, r := range s.inputs {
		if r.GVK.Group != key.Group || r.GVK.Kind != key.Kind {
			continue
		}
		if _, found := slices.BinarySearchFunc(inputs, inputID{i, key.Namespace, key.Name}, compareInputs); found {
			return true
		}
	}
	return false
}
