package merge

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	smd "sigs.k8s.io/structured-merge-diff/v6/value"
)

// Owned is a set of fields that a field manager owns, as metadata.managedFields records it
// (KEP-555, server-side apply).
type Owned struct{ set *fieldpath.Set }

// ParseOwned reads fieldsV1 of an entry of managedFields.
func ParseOwned(fieldsV1 []byte) (*Owned, error) {
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(fieldsV1)); err != nil {
		return nil, fmt.Errorf("fieldsV1: %w", err)
	}
	return &Owned{set}, nil
}

// Dropped returns the owned fields that desired lacks: an apply of desired would give them up. It
// leaves out status and the fields that an apply never changes (Strip).
func (o *Owned) Dropped(desired map[string]any) *Owned {
	dropped := &fieldpath.Set{}
	for path := range o.set.All() {
		if !unchanging(path) && !holds(desired, path) {
			dropped.Insert(path.Copy())
		}
	}
	return &Owned{dropped}
}

// Empty reports whether the set is empty.
func (o *Owned) Empty() bool { return o.set.Empty() }

// Less returns the fields of the set that are not in another set.
func (o *Owned) Less(other *Owned) *Owned { return &Owned{o.set.Difference(other.set)} }

// FieldsV1 returns the set in the form of managedFields.
func (o *Owned) FieldsV1() ([]byte, error) { return o.set.ToJSON() }

// Remove removes the set's fields from m, in place. An item of a list is removed with its key. An
// owned object stays while it has a field that is not owned.
func (o *Owned) Remove(m map[string]any) {
	for path := range o.set.Leaves().All() {
		removeAt(m, path)
	}
}

// unchanging reports whether a path leads into status, or into metadata that belongs to the API
// server.
func unchanging(path fieldpath.Path) bool {
	switch {
	case len(path) > 0 && isField(path[0], "status"):
		return true
	case len(path) < 2 || !isField(path[0], "metadata"):
		return false
	}
	for _, name := range system {
		if isField(path[1], name) {
			return true
		}
	}
	return false
}

func isField(e fieldpath.PathElement, name string) bool {
	return e.FieldName != nil && *e.FieldName == name
}

// holds reports whether a value exists at a path.
func holds(v any, path fieldpath.Path) bool {
	for _, e := range path {
		var ok bool
		v, ok = follow(v, e)
		if !ok {
			return false
		}
	}
	return v != nil
}

// follow takes one step of a path.
func follow(v any, e fieldpath.PathElement) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		if e.FieldName == nil {
			return nil, false
		}
		next, ok := v[*e.FieldName]
		return next, ok
	case []any:
		if i := place(v, e); i >= 0 {
			return v[i], true
		}
	}
	return nil, false
}

// place returns the index of an item in a list, or -1.
func place(list []any, e fieldpath.PathElement) int {
	for i, item := range list {
		switch {
		case e.Index != nil && *e.Index == i,
			e.Value != nil && smd.Equals(*e.Value, smd.NewValueInterface(item)),
			e.Key != nil && hasKey(item, *e.Key):
			return i
		}
	}
	return -1
}

// hasKey reports whether an item has a key's values. A field that the item lacks may be one that
// the server defaults (a port's protocol), and counts as equal. At least one of them must exist.
func hasKey(item any, key smd.FieldList) bool {
	m, ok := item.(map[string]any)
	if !ok {
		return false
	}
	found := false
	for _, field := range key {
		present, ok := m[field.Name]
		if !ok {
			continue
		}
		if !smd.Equals(field.Value, smd.NewValueInterface(present)) {
			return false
		}
		found = true
	}
	return found
}

// removeAt returns v without the value at a path. An item of a list is removed as a whole with its
// key.
func removeAt(v any, path fieldpath.Path) any {
	last := len(path) == 1
	switch v := v.(type) {
	case map[string]any:
		if path[0].FieldName == nil {
			return v
		}
		name := *path[0].FieldName
		if next, ok := v[name]; ok && !last {
			v[name] = removeAt(next, path[1:])
		} else {
			delete(v, name)
		}
	case []any:
		at := place(v, path[0])
		switch {
		case at < 0:
		case last, path[0].Key != nil && len(path) == 2 && isKey(path[1], *path[0].Key):
			return append(v[:at:at], v[at+1:]...)
		default:
			v[at] = removeAt(v[at], path[1:])
		}
	}
	return v
}

// isKey reports whether an element is one of a key's fields.
func isKey(e fieldpath.PathElement, key smd.FieldList) bool {
	for _, field := range key {
		if isField(e, field.Name) {
			return true
		}
	}
	return false
}

// Touches reports whether a field of the set is at a path, inside of it or around it. Items of
// lists are found in body, the object; the path has the form of Differences.
func (o *Owned) Touches(body map[string]any, path string) bool {
	touches := false
	for owned := range o.set.Leaves().All() { // without a break, which the library's sequence does not permit
		text := render(body, owned)
		touches = touches || text == path || inside(text, path) || inside(path, text)
	}
	return touches
}

// inside reports whether a path leads into another.
func inside(path, outer string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && rest != "" && (rest[0] == '.' || rest[0] == '[')
}

// render returns a path in the form of Differences. It ends at an item that is not in the body.
func render(v any, path fieldpath.Path) string {
	var text strings.Builder
	for i, e := range path {
		list, _ := v.([]any)
		switch at := place(list, e); {
		case e.FieldName != nil && i > 0:
			text.WriteString("." + step(*e.FieldName))
		case e.FieldName != nil:
			text.WriteString(step(*e.FieldName))
		case at >= 0:
			text.WriteString("[" + strconv.Itoa(at) + "]")
		default:
			return text.String()
		}
		v, _ = follow(v, e)
	}
	return text.String()
}
