package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime"
)

// maxLeaves limits how many integers, and how many texts, of a parent are replaced.
const maxLeaves = 24

// maxText limits how much of an answer's text we look through, in bytes.
const maxText = 1 << 20

// These integers replace the parent's. The large one is 2^53+1, which a double cannot hold. The
// small one fits into every integer field.
const (
	largeInteger = int64(1<<53 + 1)
	smallInteger = int64(91)
)

// extraKey is the name of a field with the large integer that is added to the objects of a parent.
const extraKey = "qznumber"

// changedInteger matches the large integer after a detour through a double, and both as fractions.
var changedInteger = regexp.MustCompile(
	`9007199254740992(\.0+)?|9007199254740993\.0+|9\.00719925474099[0-9]*[eE]\+?15|\b91\.0+\b`)

// counts matches names of fields that may be a number of children. A hook could never create 2^53+1
// of them.
var counts = regexp.MustCompile(
	`(?i)replica|count|size|parallel|complet|instance|shard|node|partition|worker|member|max|min|limit|total|desired`)

// The marks around a text that replaces one of the parent. They survive most encodings.
const (
	textBegin = "qzbegin"
	textEnd   = "qzend"
)

// leaf is an integer or a text of a parent that we replace in a question.
type leaf struct {
	path  []string
	value any
	// count is true if another integer has led to another number of children.
	count bool
}

func (l leaf) String() string {
	var b strings.Builder
	for _, step := range l.path {
		switch {
		case strings.HasPrefix(step, "["):
		case strings.ContainsAny(step, "./"):
			step = fmt.Sprintf("[%q]", step)
		case b.Len() > 0:
			b.WriteByte('.')
		}
		b.WriteString(step)
	}
	return b.String()
}

// probe is a value to put in place of a leaf.
type probe struct {
	name  string
	value func(leaf) (any, bool)
	// check looks for a changed value in a text of the answer. It returns "" if there is none.
	check func(text []byte) string
	rule  string
}

var probes = []probe{
	{"an additional field 2^53+1", extraInteger, checkInteger, ruleInteger},
	{"91", integerProbe(smallInteger), checkInteger, ruleInteger},
	{"2^53+1", largeProbe, checkInteger, ruleInteger},
	{"text beyond ASCII", textProbe(foreignText), checkText(foreignText), ruleText},
	{"text with quotes and control characters", textProbe(escapedText), checkText(escapedText), ruleText},
}

// The texts: letters beyond ASCII, an ideogram, an emoji of two UTF-16 units; and characters that
// JSON escapes.
const (
	foreignText = "é ñ 咖啡 😀"
	escapedText = "\"\\\n\t\u0001"
)

func integerProbe(value int64) func(leaf) (any, bool) {
	return func(l leaf) (any, bool) {
		_, integer := l.value.(int64)
		return value, integer
	}
}

// largeProbe replaces an integer that is no count.
func largeProbe(l leaf) (any, bool) {
	_, integer := l.value.(int64)
	return largeInteger, integer && !l.count && !counts.MatchString(l.path[len(l.path)-1])
}

// extraInteger adds the large integer to an object, for hooks that copy it as a whole.
func extraInteger(l leaf) (any, bool) {
	holder, ok := l.value.(map[string]any)
	extended := maps.Clone(holder)
	if ok {
		extended[extraKey] = largeInteger
	}
	return extended, ok
}

func textProbe(payload string) func(leaf) (any, bool) {
	return func(l leaf) (any, bool) {
		text, ok := l.value.(string)
		return text + textBegin + payload + textEnd, ok
	}
}

// probes replaces one integer or text of the parent at a time, and looks for the value in the
// answer. The hook may refuse such a parent, and need not copy any value.
func (r *round) probes() {
	if r.first == nil {
		return
	}
	all := leaves(r.subject.parent)
	for _, p := range probes {
		for i, l := range all {
			value, applies := p.value(l)
			if !applies {
				continue
			}
			parent, err := replaced(r.subject.parent, l.path, value)
			if err != nil {
				continue // the value is no longer there
			}
			q := r.question(r.subject.first(), parent, nil)
			name := fmt.Sprintf("the parent with %s in %s", p.name, l)
			got := r.put(name, q)
			r.scan(p, name, q, got)
			if got.answer == nil || len(got.answer.Children) != len(r.first.Children) {
				all[i].count = true
			}
		}
	}
}

// scan looks for a changed value in all texts of an answer.
func (r *round) scan(p probe, name string, q *hook.Question, got *reply) {
	if got.has(ruleNotUTF8) { // the decoder has replaced the bytes
		return
	}
	texts := got.texts(r.subject.kind.ChildrenField)
	for _, where := range slices.Sorted(maps.Keys(texts)) {
		if changed := p.check(texts[where]); changed != "" {
			r.found(p.rule, name, q, where+": "+changed)
			return
		}
	}
}

func checkInteger(text []byte) string {
	for _, digits := range []string{"9007199254740", "9.0071992547409", "91.0"} { // cheaper than the expression
		if bytes.Contains(text, []byte(digits)) {
			return string(changedInteger.Find(text))
		}
	}
	return ""
}

// checkText returns a function that finds a marked text with another content.
func checkText(payload string) func([]byte) string {
	return func(data []byte) string {
		var value any
		if json.Unmarshal(data, &value) != nil {
			return ""
		}
		found := ""
		walk(value, nil, func(_ []string, leaf any) {
			if text, ok := leaf.(string); ok && found == "" {
				found = changedText(text, payload)
			}
		})
		return found
	}
}

// changedText returns the text between the marks if it is another one. A text may be upper or lower
// case, or encoded for HTML, a URL, JSON or base64.
func changedText(text, payload string) string {
	if len(text) > maxText {
		return ""
	}
	if decoded, err := base64.StdEncoding.DecodeString(text); err == nil && len(text) > 0 {
		text = string(decoded)
	}
	lower := strings.ToLower(text)
	_, rest, begins := strings.Cut(lower, textBegin)
	got, _, ends := strings.Cut(rest, textEnd)
	if !begins || !ends {
		return ""
	}
	want := strings.ToLower(payload)
	for _, decode := range decoders {
		if decoded, err := decode(got); err == nil && decoded == want {
			return ""
		}
	}
	return fmt.Sprintf("%q became %q", payload, got)
}

var decoders = []func(string) (string, error){
	func(text string) (string, error) { return text, nil },
	func(text string) (string, error) { return html.UnescapeString(text), nil },
	url.QueryUnescape,
	url.PathUnescape,
	func(text string) (string, error) { return strconv.Unquote(`"` + text + `"`) },
	func(text string) (decoded string, err error) {
		err = json.Unmarshal([]byte(`"`+text+`"`), &decoded)
		return strings.ToLower(decoded), err
	},
}

// leaves returns the objects, integers and texts of a parent that its users set, at most maxLeaves
// of each.
func leaves(parent *object.Object) []leaf {
	m, err := parent.Map()
	if err != nil {
		return nil
	}
	metadata, _ := m["metadata"].(map[string]any)
	user := map[string]any{"metadata": map[string]any{"annotations": metadata["annotations"]}}
	for key, value := range m {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata", "status"}, key) {
			user[key] = value
		}
	}
	var objects, integers, texts []leaf
	walk(user, nil, func(path []string, value any) {
		l := leaf{path: slices.Clone(path), value: value}
		switch value.(type) {
		case map[string]any:
			if len(path) > 0 && path[0] != "metadata" && !slices.Contains(path, "selector") && !ofTexts(value) {
				objects = append(objects, l)
			}
		case int64:
			integers = append(integers, l)
		case string:
			if !slices.Contains(path, "selector") { // labels, which cannot hold these texts
				texts = append(texts, l)
			}
		}
	})
	return slices.Concat(objects[:min(len(objects), maxLeaves)], integers[:min(len(integers), maxLeaves)],
		texts[:min(len(texts), maxLeaves)])
}

// ofTexts reports whether a value is a map of texts, such as labels, which has no other values.
func ofTexts(value any) bool {
	fields, ok := value.(map[string]any)
	for _, field := range fields {
		if _, text := field.(string); !text {
			return false
		}
	}
	return ok && len(fields) > 0
}

// walk visits the objects, numbers, texts and booleans of a JSON value in the order of their names.
func walk(value any, path []string, visit func(path []string, leaf any)) {
	switch v := value.(type) {
	case map[string]any:
		visit(path, v)
		for _, key := range slices.Sorted(maps.Keys(v)) {
			walk(v[key], append(path, key), visit)
		}
	case []any:
		for i, item := range v {
			walk(item, append(path, fmt.Sprintf("[%d]", i)), visit)
		}
	default:
		visit(path, v)
	}
}

// replaced returns a copy of an object with another value at a path.
func replaced(o *object.Object, path []string, value any) (*object.Object, error) {
	m, err := o.Map()
	if err != nil {
		return nil, err
	}
	m = runtime.DeepCopyJSON(m)
	var at any = m
	for _, step := range path[:len(path)-1] {
		at = child(at, step)
	}
	last := path[len(path)-1]
	switch holder := at.(type) {
	case map[string]any:
		holder[last] = value
	case []any:
		i, err := index(last)
		if err != nil || i >= len(holder) {
			return nil, fmt.Errorf("there is no item %s", last)
		}
		holder[i] = value
	}
	return object.FromMap(m)
}

func child(value any, step string) any {
	switch holder := value.(type) {
	case map[string]any:
		return holder[step]
	case []any:
		if i, err := index(step); err == nil && i < len(holder) {
			return holder[i]
		}
	}
	return nil
}

func index(step string) (int, error) { return strconv.Atoi(strings.Trim(step, "[]")) }
