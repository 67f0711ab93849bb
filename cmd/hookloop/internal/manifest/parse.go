package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/object"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/yaml"
)

// document holds one document of a file.
type document struct {
	file  string
	above int
	text  []byte
}

// parse adds the objects of a file.
func (s *Set) parse(file string, data []byte, l *limits) error {
	l.marks -= marks(data)
	if l.marks < 0 {
		return faultf(Position{File: file}, "the files have more than %d fields and items, expected less", maxMarks)
	}
	for _, d := range split(file, data) {
		l.documents--
		if l.documents < 0 {
			return faultf(Position{file, d.above + 1, 1},
				"the files have more than %d documents, expected less", maxDocuments)
		}
		objects, err := d.objects(l)
		if err != nil {
			return err
		}
		s.Objects = append(s.Objects, objects...)
	}
	return nil
}

// marks counts the characters that can begin a node.
func marks(data []byte) (n int) {
	for _, c := range data {
		switch c {
		case ',', ':', '-', '[', '{', '?', '\n':
			n++
		}
	}
	return n
}

// split cuts a file at its lines "---", as kubectl does.
func split(file string, data []byte) []document {
	var documents []document
	start := 0
	line := 0
	first := 0
	for at := 0; at < len(data); line++ {
		end := at + bytes.IndexByte(data[at:], '\n') + 1
		if end == at {
			end = len(data)
		}
		if isSeparator(data[at:end]) && at > start {
			documents = append(documents, document{file, first, data[start:at]})
			start = at
			first = line
		}
		at = end
	}
	return append(documents, document{file, first, data[start:]})
}

func isSeparator(line []byte) bool {
	after, found := bytes.CutPrefix(line, []byte("---"))
	return found && (len(after) == 0 || strings.ContainsRune(" \t\r\n", rune(after[0])))
}

// objects returns the objects of a document; an empty one has none.
func (d document) objects(l *limits) ([]*Object, error) {
	var tree yaml.Node
	err := yaml.Unmarshal(escaped(d.text), &tree)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, d.syntax(err)
	}
	if tree.Kind != yaml.DocumentNode || resolve(tree.Content[0]).Tag == nullTag {
		return nil, nil
	}
	root := tree.Content[0]
	if err := d.check(root, l); err != nil {
		return nil, err
	}
	if root.Kind != yaml.MappingNode {
		return nil, faultf(d.at(root),
			"got %s, expected a Kubernetes object with apiVersion, kind and metadata", kindOf(root))
	}
	text := d.text
	if !json.Valid(text) {
		text, err = kyaml.YAMLToJSON(text)
		if err != nil {
			return nil, d.syntax(err)
		}
	}
	return d.decode(root, text, "")
}

// decode returns the object of a mapping, or the items of a List. kind is used for items that name
// none.
func (d document) decode(n *yaml.Node, text []byte, kind string) ([]*Object, error) {
	type head struct {
		APIVersion any               `json:"apiVersion"`
		Kind       any               `json:"kind"`
		Items      []json.RawMessage `json:"items"`
	}
	var h head
	_ = json.Unmarshal(text, &h) // object.Decode reports the error
	name, _ := h.Kind.(string)
	of := &Object{file: d.file, above: d.above, node: n}
	if singular, list := strings.CutSuffix(name, "List"); list && h.Items != nil {
		return d.items(of, h.Items, fmt.Sprint(h.APIVersion), singular)
	}
	return of.decode(text, kind)
}

// items returns the objects of a List.
func (d document) items(list *Object, items []json.RawMessage, version, kind string) ([]*Object, error) {
	var objects []*Object
	for i, item := range items {
		_, n, _ := step(list.node, "items")
		_, n, _ = step(resolve(n), fmt.Sprintf("[%d]", i))
		n = resolve(n)
		if n.Kind != yaml.MappingNode {
			return nil, list.Errorf(fmt.Sprintf("items[%d]", i), "got %s, expected an object", kindOf(n))
		}
		common := ""
		if kind != "" {
			common = version + "/" + kind
		}
		more, err := d.decode(n, item, common)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	return objects, nil
}

// decode fills in the object. common is the apiVersion/kind that a typed list gives to items
// without their own.
func (o *Object) decode(text []byte, common string) ([]*Object, error) {
	for _, field := range []string{"apiVersion", "kind"} {
		if at, value, _ := step(o.node, field); at == nil && common == "" {
			return nil, o.Errorf("",
				"the object has no %s, expected a Kubernetes object with apiVersion, kind and metadata", field)
		} else if at != nil && (resolve(value).Tag != stringTag || resolve(value).Value == "") {
			return nil, o.Errorf(field, "%s: got %s, expected a text", field, kindOf(resolve(value)))
		}
	}
	decoded, err := object.DecodeAs(kindFrom(common), text)
	if err != nil {
		return nil, o.join([]Fault{explain(err)})
	}
	if decoded.Name() == "" && decoded.Meta().GetGenerateName() == "" {
		return nil, o.Errorf("metadata", "the %s has no metadata.name", decoded.GVK().Kind)
	}
	o.Object = decoded
	return []*Object{o}, nil
}

func (d document) at(n *yaml.Node) Position { return positionOf(d.file, d.above, n) }

// lineOf finds the line number in the text of a YAML error, because these errors have no type.
var lineOf = regexp.MustCompile(`(?s)^.*?line (\d+): (.*)$`)

// syntax adds the file and its line to an error of a YAML parser.
func (d document) syntax(err error) error {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	at := Position{File: d.file, Line: d.above + 1}
	if found := lineOf.FindStringSubmatch(text); found != nil {
		line, _ := strconv.Atoi(found[1])
		at.Line = d.above + line
		text = found[2]
	} else if n := d.unprintable(); n >= 0 {
		before := d.text[:n]
		at.Line += bytes.Count(before, []byte("\n"))
		at.Column = n - bytes.LastIndexByte(before, '\n')
	}
	return faultf(at, "is not YAML: %s%s", text, d.hint())
}

// unprintable returns the index of the first byte that YAML does not allow, because it is not UTF-8
// or is a control character. It returns -1 if there is none.
func (d document) unprintable() int {
	for at := 0; at < len(d.text); {
		r, size := utf8.DecodeRune(d.text[at:])
		if r == utf8.RuneError && size == 1 || r < ' ' && !strings.ContainsRune("\t\r\n", r) || r == 0x7f {
			return at
		}
		at += size
	}
	return -1
}

// hint names the usual cause of a syntax error in such a document.
func (d document) hint() string {
	if bytes.Contains(d.text, []byte("{{")) {
		return "; the file looks like a template, expected its rendered form (helm template)"
	}
	return ""
}

// escapes matches the escapes that JSON has and YAML does not: \/ and halves of a surrogate pair.
// It also matches an escaped backslash, so that its second half does not look like the start of an
// escape.
var escapes = regexp.MustCompile(`\\\\|\\/|\\u[dD][89a-fA-F][0-9a-fA-F]{2}`)

// escaped replaces the escapes that only JSON has, without changing the length. Use the result to
// find positions; read values from the original.
func escaped(text []byte) []byte {
	if !json.Valid(text) {
		return text
	}
	return escapes.ReplaceAllFunc(text, func(escape []byte) []byte {
		switch len(escape) {
		case len(`\/`):
			if escape[1] == '/' {
				return []byte("//")
			}
			return escape
		default:
			return []byte(`\u003f`)
		}
	})
}
