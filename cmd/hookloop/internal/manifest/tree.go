package manifest

import (
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	nullTag   = "!!null"
	stringTag = "!!str"
	mergeTag  = "!!merge"
)

// check refuses duplicate keys, anchors that contain themselves, and aliases that would expand
// beyond the limit. Call it before building values.
func (d document) check(root *yaml.Node, l *limits) error {
	c := checker{document: d, sizes: map[*yaml.Node]int{}, limit: l.expanded}
	size, err := c.size(root)
	if err == nil && size > l.expanded {
		err = faultf(d.at(root), "the aliases expand to more than %d MiB, expected less", maxExpanded>>20)
	}
	l.expanded -= size
	return err
}

// checker computes how large nodes are after expansion. While a node is being computed, its size is
// -1.
type checker struct {
	document
	sizes map[*yaml.Node]int
	limit int
}

// size returns the expanded size of a node, or any number above the limit.
func (c *checker) size(n *yaml.Node) (int, error) {
	if n.Kind == yaml.AliasNode {
		if c.sizes[n.Alias] == -1 {
			return 0, faultf(c.at(n), "the anchor %q contains itself", n.Value)
		}
		return c.size(n.Alias)
	}
	if known, found := c.sizes[n]; found {
		return known, nil
	}
	if n.Kind == yaml.ScalarNode {
		return 16 + len(n.Value), nil
	}
	c.sizes[n] = -1
	if err := c.unique(n); err != nil {
		return 0, err
	}
	total := 16
	for _, part := range n.Content {
		size, err := c.size(part)
		if err != nil {
			return 0, err
		}
		total = min(total+size, c.limit+1)
	}
	c.sizes[n] = total
	return total, nil
}

// unique refuses a key that appears twice in a mapping.
func (c *checker) unique(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return nil
	}
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := resolve(n.Content[i])
		if key.Kind != yaml.ScalarNode {
			return faultf(c.at(n.Content[i]), "got %s as the name of a field, expected a text%s", kindOf(key), c.hint())
		}
		if line, twice := lines[key.Value]; twice {
			return faultf(c.at(n.Content[i]), "the field %q is also in line %d, expected it once", key.Value, line)
		}
		lines[key.Value] = n.Content[i].Line + c.above
	}
	return nil
}

// kindOf describes a value.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case nullTag:
		return "nothing"
	case stringTag:
		if n.Value == "" {
			return "an empty text"
		}
		return "a text"
	case "!!bool":
		return "a boolean"
	case "!!int", "!!float":
		return "a number"
	}
	return "a value of type " + strings.TrimPrefix(n.Tag, "!!")
}

// kindFrom parses group/version/kind or version/kind. An empty text gives the zero value.
func kindFrom(text string) schema.GroupVersionKind {
	at := strings.LastIndexByte(text, '/')
	if at < 0 {
		return schema.GroupVersionKind{}
	}
	return schema.FromAPIVersionAndKind(text[:at], text[at+1:])
}
