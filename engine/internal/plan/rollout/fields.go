package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Fields are dotted paths into a parent (revisionHistory.fieldPaths). A change of their values
// makes a new revision. Other changes of the parent apply to all children immediately.
type Fields []string

// latest returns the parent's current revision.
func (f Fields) latest(parent *object.Object) (*Revision, error) {
	whole, err := parent.Map()
	if err != nil {
		return nil, err
	}
	r := &Revision{Patch: map[string]any{}, Members: map[Member]bool{}}
	for _, path := range f {
		steps := strings.Split(path, ".")
		if value, ok := get(whole, steps); ok {
			set(r.Patch, steps, value)
		}
	}
	r.text, err = canonical(r.Patch)
	return r, err
}

// Parent returns the parent at a revision: the revision's values of these fields, and the parent's
// own values of all others.
func (f Fields) Parent(parent *object.Object, r *Revision) (*object.Object, error) {
	whole, err := parent.Map()
	if err != nil {
		return nil, err
	}
	for _, path := range f {
		steps := strings.Split(path, ".")
		if value, ok := get(r.Patch, steps); ok {
			set(whole, steps, value)
		} else {
			remove(whole, steps)
		}
	}
	return object.FromMap(whole)
}

// Name returns the name of a revision's ControllerRevision: <plural>.<group or core>-<hash>. The
// hash depends only on the parent's UID and the revision, so that a second creation fails.
func (r *Revision) Name(resource object.Resource, parent types.UID) string {
	group := resource.GVK.Group
	if group == "" {
		group = "core"
	}
	sum := sha256.Sum256([]byte(string(parent) + "\n" + r.text))
	return resource.Plural + "." + group + "-" + hex.EncodeToString(sum[:20])
}

// get follows steps; false if one is absent or its parent is not an object.
func get(m map[string]any, steps []string) (any, bool) {
	for _, step := range steps[:len(steps)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			return nil, false
		}
		m = next
	}
	value, ok := m[steps[len(steps)-1]]
	return value, ok
}

// set sets the value at the steps, and creates the objects on the way.
func set(m map[string]any, steps []string, value any) {
	for _, step := range steps[:len(steps)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			next = map[string]any{}
			m[step] = next
		}
		m = next
	}
	m[steps[len(steps)-1]] = value
}

// remove removes the value at the steps.
func remove(m map[string]any, steps []string) {
	for _, step := range steps[:len(steps)-1] {
		next, ok := m[step].(map[string]any)
		if !ok {
			return
		}
		m = next
	}
	delete(m, steps[len(steps)-1])
}
