// Package jsonmap decodes and encodes JSON objects as maps, for the plan of a write: once for each
// changed child and its last-applied state. It does what encoding/json and API machinery do, byte
// for byte and value for value, but without reflection: most of their time goes there.
//
// It is not for JSON from hooks with its limits (package webhook), nor for objects of the cache,
// which stay raw (package object). Its functions are pure. Fuzz targets compare them with those of
// encoding/json and API machinery.
package jsonmap

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// maxDepth bounds the nesting of JSON that Decode reads.
const maxDepth = 200

// Decode decodes a JSON object: integers as int64, other numbers as float64, and the last one of
// several members of a name. It returns false for JSON that it does not read: invalid JSON, no
// object, too deep a nesting, or characters to replace. API machinery's decoder then has the value
// or the error.
func Decode(data []byte) (map[string]any, bool) {
	d := decoder{data: data, all: string(data)}
	d.skip()
	if d.next() != '{' {
		return nil, false
	}
	m, ok := d.object(0)
	d.skip()
	return m, ok && d.at == len(d.data)
}

// decoder reads JSON from a place on.
type decoder struct {
	data []byte
	// all is data as one string. The strings of the result are parts of it: one allocation instead of
	// one for each.
	all string
	at  int
}

// next returns the byte at the place; 0 at the end.
func (d *decoder) next() byte {
	if d.at < len(d.data) {
		return d.data[d.at]
	}
	return 0
}

// skip skips spaces.
func (d *decoder) skip() {
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return
		}
	}
}

// take skips spaces and one byte; it returns false if there is another byte.
func (d *decoder) take(b byte) bool {
	d.skip()
	if d.next() != b {
		return false
	}
	d.at++
	return true
}

func (d *decoder) object(depth int) (map[string]any, bool) {
	m := map[string]any{}
	d.at++ // the brace
	if depth == maxDepth {
		return nil, false
	}
	if d.take('}') {
		return m, true
	}
	for {
		d.skip()
		name, ok := d.text(true)
		if !ok || !d.take(':') {
			return nil, false
		}
		m[name], ok = d.value(depth + 1)
		if !ok {
			return nil, false
		}
		if d.take(',') {
			continue
		}
		return m, d.take('}')
	}
}

func (d *decoder) array(depth int) ([]any, bool) {
	all := []any{}
	d.at++ // the bracket
	if depth == maxDepth {
		return nil, false
	}
	if d.take(']') {
		return all, true
	}
	for {
		v, ok := d.value(depth + 1)
		if !ok {
			return nil, false
		}
		all = append(all, v)
		if d.take(',') {
			continue
		}
		return all, d.take(']')
	}
}

func (d *decoder) value(depth int) (any, bool) {
	d.skip()
	switch d.next() {
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case '"':
		return d.text(false)
	case 't':
		return true, d.literal("true")
	case 'f':
		return false, d.literal("false")
	case 'n':
		return nil, d.literal("null")
	}
	return d.number()
}

func (d *decoder) literal(text string) bool {
	end := d.at + len(text)
	if end > len(d.data) || string(d.data[d.at:end]) != text {
		return false
	}
	d.at = end
	return true
}

// text reads a string. Names of members are shared if many objects have them.
func (d *decoder) text(name bool) (string, bool) {
	start := d.at
	if d.next() != '"' {
		return "", false
	}
	ascii := true
	escaped := false
	for d.at++; d.at < len(d.data); d.at++ {
		switch b := d.data[d.at]; {
		case b == '"':
			d.at++
			return d.unquote(start, name, ascii, escaped)
		case b == '\\':
			escaped = true
			d.at++
		case b < ' ':
			return "", false
		case b >= utf8.RuneSelf:
			ascii = false
		}
	}
	return "", false
}

// unquote returns the string that begins at start and ends before the place.
func (d *decoder) unquote(start int, name, ascii, escaped bool) (string, bool) {
	if escaped {
		text, err := jsontext.AppendUnquote(nil, d.data[start:d.at])
		return string(text), err == nil
	}
	text := d.all[start+1 : d.at-1]
	if name {
		if shared, ok := names[text]; ok {
			return shared, true
		}
	}
	return text, ascii || utf8.ValidString(text)
}

// names are the names of members that most objects have.
var names = func() map[string]string {
	const all = "apiVersion kind metadata name namespace uid resourceVersion generation creationTimestamp labels " +
		"annotations ownerReferences controller blockOwnerDeletion finalizers spec status data type reason message " +
		"lastTransitionTime conditions observedGeneration replicas selector matchLabels template containers image env " +
		"value ports containerPort port protocol resources limits requests cpu memory volumes volumeMounts mountPath path"
	m := map[string]string{}
	for name := range strings.FieldsSeq(all) {
		m[name] = name
	}
	return m
}()

// number reads a number by JSON's grammar.
func (d *decoder) number() (any, bool) {
	start := d.at
	whole := true
	if d.next() == '-' {
		d.at++
	}
	if d.next() == '0' {
		d.at++
	} else if !d.digits() {
		return nil, false
	}
	if d.next() == '.' {
		whole = false
		d.at++
		if !d.digits() {
			return nil, false
		}
	}
	if b := d.next(); b == 'e' || b == 'E' {
		whole = false
		d.at++
		if d.next() == '+' || d.next() == '-' {
			d.at++
		}
		if !d.digits() {
			return nil, false
		}
	}
	text := string(d.data[start:d.at])
	if whole {
		if i, err := strconv.ParseInt(text, 10, 64); err == nil {
			return i, true
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	return f, err == nil
}

// digits reads one digit or more.
func (d *decoder) digits() bool {
	start := d.at
	for b := d.next(); b >= '0' && b <= '9'; b = d.next() {
		d.at++
	}
	return d.at > start
}
