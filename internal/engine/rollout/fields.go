package rollout

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Fields are dotted paths into a parent (revisionHistory.fieldPaths); a change of what they lead to
// is a new revision. Other changes of the parent reach all children at once.
type Fields []string

// latest is the revision that the parent is at.
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

// Parent is the parent as it was at a revision: the fields that make revisions are the revision's,
// all others are the parent's own.
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

// Name is the name of a revision's ControllerRevision: <plural>.<group or core>-<hash>. The hash
// depends on the parent's UID and the revision alone, so that creating it twice is found out.
func (r *Revision) Name(resource object.Resource, parent types.UID) string {
	group := resource.GVK.Group
	if group == "" {
		group = "core"
	}
	sum := sha256.Sum256([]byte(string(parent) + "\n" + r.text))
	return resource.Plural + "." + group + "-" + hex.EncodeToString(sum[:20])
}

// get follows steps; false where one is absent or leads into something else than an object.
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

// set puts a value where steps lead, and makes the objects on the way.
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

// remove takes away what steps lead to.
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
