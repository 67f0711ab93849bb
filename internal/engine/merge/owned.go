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

// Dropped are the owned fields that desired does not name: what an apply of desired gives up.
// Status and what an apply never changes (Strip) are left out.
func (o *Owned) Dropped(desired map[string]any) *Owned {
	dropped := &fieldpath.Set{}
	for path := range o.set.All() {
		if !unchanging(path) && !holds(desired, path) {
			dropped.Insert(path.Copy())
		}
	}
	return &Owned{dropped}
}

// Empty says whether nothing is in the set.
func (o *Owned) Empty() bool { return o.set.Empty() }

// Less is the set without another.
func (o *Owned) Less(other *Owned) *Owned { return &Owned{o.set.Difference(other.set)} }

// FieldsV1 is the set as managedFields records it.
func (o *Owned) FieldsV1() ([]byte, error) { return o.set.ToJSON() }

// Remove takes the set's fields out of m, in place. An item of a list goes with its key; an object
// that is owned stays while something is in it that is not.
func (o *Owned) Remove(m map[string]any) {
	for path := range o.set.Leaves().All() {
		removeAt(m, path)
	}
}

// unchanging says whether a path leads into status, or into metadata that belongs to the API
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

// holds says whether a value has something where a path leads.
func holds(v any, path fieldpath.Path) bool {
	for _, e := range path {
		var ok bool
		if v, ok = follow(v, e); !ok {
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

// place finds an item of a list; -1 where there is none.
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

// hasKey says whether an item has a key's values. A field that the item leaves out may be one that
// the server defaults (a port's protocol), and counts as equal; one of them must be there.
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

// removeAt returns v without what a path leads to. The item of a list whose key is given up goes as
// a whole.
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

// isKey says whether an element is one of a key's fields.
func isKey(e fieldpath.PathElement, key smd.FieldList) bool {
	for _, field := range key {
		if isField(e, field.Name) {
			return true
		}
	}
	return false
}

// Touches reports whether a field of the set is at a path, inside of it or around it. Body is the
// object, by which items of lists are found; the path is as Differences writes it.
func (o *Owned) Touches(body map[string]any, path string) bool {
	touches := false
	for owned := range o.set.Leaves().All() { // without a break, which the library's sequence does not allow
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

// render writes a path as Differences does. It ends at an item that is not in the body.
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
