package verify

import (
	"slices"

	"github.com/hookloop/hookloop/engine/object"
)

// wrongType asks about a parent with a text in place of each field that its users set, which most
// hooks cannot answer. The error must have a code and a message; an answer is allowed.
func (r *round) wrongType() {
	m, err := r.subject.parent.Map()
	if err != nil || r.first == nil {
		return
	}
	for key := range m {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			m[key] = "a text in place of this field"
		}
	}
	parent, err := object.FromMap(m)
	if err != nil {
		return
	}
	r.put("the parent with a text in place of its spec", r.question(r.subject.first(), parent, nil))
}

// withoutSpec asks about a parent that has none of the fields that its users set, unless its schema
// requires a spec. The hook may answer or refuse it.
func (r *round) withoutSpec() {
	m, err := r.subject.parent.Map()
	if err != nil || r.first == nil {
		return
	}
	required, _ := r.subject.resources.schemas[r.subject.parent.GVK()]["required"].([]any)
	if slices.Contains(required, any("spec")) {
		return
	}
	delete(m, "spec")
	parent, err := object.FromMap(m)
	if err != nil {
		return
	}
	const name = "the parent without a spec"
	q := r.question(r.subject.first(), parent, nil)
	r.remember(name, q, r.put(name, q))
}
