package manifest

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Position names a place in a file. Line and Column count from 1; 0 means unknown.
type Position struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
}

// String returns file:line:column, without the parts that are not known. Stdin is shown as
// "<stdin>".
func (p Position) String() string {
	name := p.File
	if name == stdinName {
		name = "<stdin>"
	}
	switch {
	case p.Line == 0:
		return name
	case p.Column == 0:
		return fmt.Sprintf("%s:%d", name, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", name, p.Line, p.Column)
}

// Compare orders positions by file, line and column.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.File, other.File), cmp.Compare(p.Line, other.Line), cmp.Compare(p.Column, other.Column))
}

// At returns where a field is written: its name, or an item of a list. Write the path as field.Path
// and CRDs do, for example spec.childResources[2].updateStrategy or metadata.labels[app]. An empty
// path means the object itself. If the field is absent, At returns the position of the innermost
// field on the path that is present.
func (o *Object) At(path string) Position {
	at := o.node
	value := o.node
	rest := strings.TrimPrefix(path, ".")
	for rest != "" {
		place, next, after := step(resolve(value), rest)
		if place == nil {
			break
		}
		at = place
		value = next
		rest = after
	}
	return o.position(at)
}

func (o *Object) position(n *yaml.Node) Position { return positionOf(o.file, o.above, n) }

func positionOf(file string, above int, n *yaml.Node) Position {
	return Position{File: file, Line: n.Line + above, Column: n.Column}
}

// resolve follows an alias.
func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// step takes the first step of a path. It returns the node that has the position of the step, its
// value, and the rest of the path; nil if the step leads nowhere.
func step(n *yaml.Node, path string) (at, value *yaml.Node, rest string) {
	switch n.Kind {
	case yaml.MappingNode:
		return stepInto(n, path)
	case yaml.SequenceNode:
		index, after, found := strings.Cut(strings.TrimPrefix(path, "["), "]")
		i, err := strconv.Atoi(index)
		if !found || err != nil || i < 0 || i >= len(n.Content) {
			return nil, nil, ""
		}
		return n.Content[i], n.Content[i], strings.TrimPrefix(after, ".")
	default:
		return nil, nil, ""
	}
}

// stepInto steps to the field with the longest name that begins the path, because a name may have
// dots.
func stepInto(n *yaml.Node, path string) (at, value *yaml.Node, rest string) {
	longest := -1
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if key.Tag == mergeTag {
			if a, v, r := stepMerged(resolve(n.Content[i+1]), path); a != nil && longest < 0 {
				at = a
				value = v
				rest = r
			}
			continue
		}
		if after, ok := cutName(path, key.Value); ok && len(key.Value) > longest {
			longest = len(key.Value)
			at = key
			value = n.Content[i+1]
			rest = after
		}
	}
	return at, value, rest
}

// stepMerged steps into the value of a merge key, one mapping or a list of them.
func stepMerged(n *yaml.Node, path string) (at, value *yaml.Node, rest string) {
	if n.Kind == yaml.MappingNode {
		return stepInto(n, path)
	}
	for _, item := range n.Content {
		if m := resolve(item); n.Kind == yaml.SequenceNode && m.Kind == yaml.MappingNode {
			at, value, rest = stepInto(m, path)
			if at != nil {
				return at, value, rest
			}
		}
	}
	return nil, nil, ""
}

// cutName cuts a field's name off a path: name, name.rest, name[rest], [name]rest, ["name"]rest.
func cutName(path, name string) (rest string, ok bool) {
	quoted := strconv.Quote(name)
	for _, form := range []string{"[" + name + "]", quoted, "['" + name + "']", "[" + quoted + "]"} {
		if after, found := strings.CutPrefix(path, form); found {
			return strings.TrimPrefix(after, "."), true
		}
	}
	after, found := strings.CutPrefix(path, name)
	if !found || after != "" && after[0] != '.' && after[0] != '[' {
		return "", false
	}
	return strings.TrimPrefix(after, "."), true
}
