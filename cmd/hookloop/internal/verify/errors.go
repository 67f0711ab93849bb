package verify

import (
	"slices"

	"github.com/hookloop/hookloop/engine/object"
)

// wrongType asks about a parent in which every field that users set has become a text. Most hooks
// cannot answer that. The hook may answer; if it returns an error, it must have a code and a
// message.
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

// withoutSpec asks about a parent without the fields that users set, unless its schema requires a
// spec. The hook may answer or refuse.
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
