package verify

import (
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// setInput reads the input of a map hook, or makes one of the first declared kind.
func (s *subject) setInput(file string) error {
	if len(s.inputs) == 0 {
		if file != "" {
			return usagef("--input: got %q, expected none for a %s", file, s.kind.Declared)
		}
		return nil
	}
	r, found := s.resources.find(s.inputs[0])
	m := map[string]any{}
	if file != "" {
		o, err := readObject("--input", file, func(o *object.Object) bool { return s.declaresInput(s.resources.of(o.GVK())) })
		if err != nil {
			return err
		}
		r = s.resources.of(o.GVK())
		found = true
		if !s.declaresInput(r) {
			return usagef("--input: got a %s, expected one of the controller's %v", object.KindString(o.GVK()), s.inputs)
		}
		m, err = o.Map()
		if err != nil {
			return usagef("--input: %v", err)
		}
	} else if found {
		m = map[string]any{
			"apiVersion": r.GVK.GroupVersion().String(), "kind": r.GVK.Kind,
			"metadata": map[string]any{"name": "input", "labels": s.selectedLabels()},
		}
		if namespace := s.parent.Namespace(); namespace != "" {
			m["metadata"].(map[string]any)["namespace"] = namespace
		}
	}
	if !found {
		return usagef("--controller: input resource %s is not known here; add a file with its CustomResourceDefinition, "+
			"or an input with --input", s.inputs[0])
	}
	stored(m, r, "33333333-3333-4333-8333-333333333333")
	var err error
	s.input, err = object.FromMap(m)
	if err != nil {
		return usagef("--input: %v", err)
	}
	return nil
}

// selectedLabels returns labels that the selector of the parent matches, as far as it names some.
func (s *subject) selectedLabels() map[string]any {
	raw, _ := s.parent.Field("spec", "selector")
	return anyMap(labelsFor(raw, map[string]string{"app": "input"}))
}

func (s *subject) declaresInput(r object.Resource) bool {
	for _, rule := range s.inputs {
		if known, found := s.resources.find(rule); found && known.GVK == r.GVK ||
			!found && rule.APIVersion == r.GVK.GroupVersion().String() {
			return true
		}
	}
	return false
}

// mapKey returns the key of an input as the engine does: Kind.group/namespace/name.
func mapKey(input *object.Object) string {
	kind := input.GVK().Kind
	if group := input.GVK().Group; group != "" {
		kind += "." + group
	}
	return kind + "/" + input.Ref().NamespacedName()
}

// tombstone asks a map hook which outputs to keep once their input is gone.
func (r *round) tombstone() {
	if r.targets[hook.Tombstone] == nil || r.first == nil {
		return
	}
	observed := r.observed(r.first)
	name := fmt.Sprintf("an input that is gone, with %s", count(len(observed), "child object"))
	q := r.question(hook.Tombstone, r.subject.parent, observed)
	r.served(name, q, r.put(name, q))
}
