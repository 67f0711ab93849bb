package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// reader reads an API object in one pass and copies it as compact JSON, leaving out
// metadata.managedFields and LastAppliedAnnotation. It keeps the order of members and the escapes
// in strings.
type reader struct {
	d *jsontext.Decoder
	// source is what d reads.
	source bytes.Buffer
	out    []byte
	// apiVersion and kind are empty if they are absent.
	apiVersion, kind string
	// metadata begins and ends at these places of out; both are 0 if it is absent.
	metadataStart, metadataEnd int
	// meta is the decoded metadata, unless unusual is set: then it has a value that API machinery
	// must decode or reject.
	meta    metadata
	unusual bool
	// lastApplied is the value of LastAppliedAnnotation if hasLastApplied is set. managedFields are nil if
	// they have no fields of server-side apply.
	lastApplied    []byte
	hasLastApplied bool
	managedFields  []byte
	// scratch is for texts that are put together.
	scratch []byte
}

// maxKept is the largest buffer that a reader keeps for its next use, in bytes.
const maxKept = 64 << 10

// readers is a pool, because the buffers of a reader are larger than most objects.
var readers = sync.Pool{New: func() any { return &reader{d: new(jsontext.Decoder)} }}

// newReader returns a reader for data. The caller must call release.
func newReader(data []byte) *reader {
	r := readers.Get().(*reader)
	*r = reader{
		d: r.d, out: r.out[:0], lastApplied: r.lastApplied[:0], scratch: r.scratch[:0],
		meta: metadata{
			name: r.meta.name[:0], uid: r.meta.uid[:0], resourceVersion: r.meta.resourceVersion[:0],
		},
	}
	r.source = *bytes.NewBuffer(data)
	r.d.Reset(&r.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return r
}

// release returns the reader to the pool. Views of its buffers must not be used afterwards.
func (r *reader) release() {
	if cap(r.out)+cap(r.lastApplied)+cap(r.scratch)+cap(r.meta.name) > maxKept {
		r.out = nil
		r.lastApplied = nil
		r.scratch = nil
		r.meta.name = nil
	}
	r.source = bytes.Buffer{}
	r.d.Reset(&r.source)
	readers.Put(r)
}

// object reads the object.
func (r *reader) object() error {
	r.out = append(r.out, '{')
	err := r.whole(r.member)
	r.out = append(r.out, '}')
	return err
}

// metadata returns the JSON of the metadata. It aliases the buffer.
func (r *reader) metadata() []byte {
	if r.metadataEnd == 0 {
		return []byte("{}")
	}
	return r.out[r.metadataStart:r.metadataEnd]
}

// whole reads a JSON object and returns an error if anything follows it.
func (r *reader) whole(member func(name []byte) error) error {
	if kind := r.d.PeekKind(); kind != '{' {
		if _, err := r.d.ReadValue(); err != nil {
			return err
		}
		return fmt.Errorf("got %s, expected a JSON object", kindName(kind))
	}
	if err := r.members(member); err != nil {
		return err
	}
	if _, err := r.d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data after the JSON object")
	}
	return nil
}

// members reads a JSON object. It calls member with each quoted name; member must read the value.
func (r *reader) members(member func(name []byte) error) error {
	if _, err := r.d.ReadToken(); err != nil {
		return err
	}
	for r.d.PeekKind() != '}' {
		name, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
	_, err := r.d.ReadToken()
	return err
}

// member reads a member of the object.
func (r *reader) member(name []byte) error {
	r.name(name)
	switch string(textOf(name)) {
	case "metadata":
		r.unusual = r.unusual || r.metadataEnd > 0 || r.d.PeekKind() != '{'
		r.metadataStart = len(r.out)
		err := r.nested(r.metadataMember)
		r.metadataEnd = len(r.out)
		return err
	case "apiVersion":
		return r.text("apiVersion", &r.apiVersion)
	case "kind":
		return r.text("kind", &r.kind)
	}
	return r.value()
}

// metadataMember reads a member of the metadata.
func (r *reader) metadataMember(name []byte) error {
	start := len(r.out)
	r.name(name)
	switch key := textOf(name); string(key) {
	case "managedFields":
		value, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		if kind := value.Kind(); kind != '[' && kind != 'n' {
			r.out = append(r.out, value...)
			r.unusual = true
			return nil
		}
		r.managedFields = nil
		if bytes.Contains(value, applyOperation) {
			r.managedFields = bytes.Clone(value)
		}
		r.out = r.out[:start]
		return nil
	case "annotations":
		err := r.annotations()
		if r.hasLastApplied && len(r.meta.annotations) == 0 && !r.unusual {
			r.out = r.out[:start]
			r.meta.annotations = nil
		}
		return err
	case "labels":
		return r.labels()
	default:
		set := metaFields[string(key)]
		value, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		r.out = appendCompact(r.out, value)
		r.unusual = set != nil && !set(&r.meta, value) || r.unusual
		return nil
	}
}

// labels reads and copies the labels.
func (r *reader) labels() error {
	if r.meta.labels != nil || r.d.PeekKind() != '{' {
		r.unusual = true
		return r.value()
	}
	start := len(r.out)
	if err := r.value(); err != nil {
		return err
	}
	labels, ok := sharedLabels.get(r.out[start:], decodeTexts)
	r.meta.labels = labels
	r.unusual = r.unusual || !ok
	return nil
}

// decodeTexts decodes a JSON object. It returns false if not all values are strings.
func decodeTexts(text []byte) (map[string]string, bool) {
	values := map[string]string{}
	r := newReader(text)
	defer r.release()
	err := r.whole(func(name []byte) error {
		key := shared(name) // before the decoder reads on
		value, err := r.d.ReadValue()
		if err == nil && value.Kind() != '"' {
			err = errStop
		}
		if err == nil {
			values[key] = unquote(value)
		}
		return err
	})
	return values, err == nil
}

// annotations reads and copies the annotations, except LastAppliedAnnotation.
func (r *reader) annotations() error {
	if r.meta.annotations != nil || r.d.PeekKind() != '{' {
		r.unusual = true
		return r.value()
	}
	begin := len(r.out)
	err := r.nested(func(name []byte) error {
		start := len(r.out)
		r.name(name)
		isLastApplied := string(textOf(name)) == LastAppliedAnnotation
		value, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		if isLastApplied && value.Kind() == '"' {
			r.out = r.out[:start]
			r.hasLastApplied = true
			r.lastApplied = appendText(r.lastApplied[:0], value)
			return nil
		}
		r.out = appendCompact(r.out, value)
		return nil
	})
	if err != nil {
		return err
	}
	values, ok := sharedLabels.get(r.out[begin:], decodeTexts)
	r.meta.annotations = values
	r.unusual = r.unusual || !ok
	return nil
}

// nested reads and copies a value. If the value is an object, it calls member for each name.
func (r *reader) nested(member func(name []byte) error) error {
	if r.d.PeekKind() != '{' {
		return r.value()
	}
	r.out = append(r.out, '{')
	err := r.members(member)
	r.out = append(r.out, '}')
	return err
}

// name copies the name of the next member.
func (r *reader) name(name []byte) {
	if r.out[len(r.out)-1] != '{' {
		r.out = append(r.out, ',')
	}
	r.out = append(append(r.out, name...), ':')
}

// value reads and copies a value.
func (r *reader) value() error {
	value, err := r.d.ReadValue()
	r.out = appendCompact(r.out, value)
	return err
}

// text reads and copies a value, which must be a string.
func (r *reader) text(key string, text *string) error {
	value, err := r.d.ReadValue()
	if err != nil {
		return err
	}
	r.out = append(r.out, value...)
	if value.Kind() == '"' {
		*text = shared(value)
	} else if err := json.Unmarshal(value, text); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// complete adds apiVersion and kind from gvk if the object does not have them.
func (r *reader) complete(gvk schema.GroupVersionKind) error {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	var first []byte
	if r.apiVersion == "" && apiVersion != "" {
		r.apiVersion = apiVersion
		first = append(first, `"apiVersion":"`+apiVersion+`",`...)
	}
	if r.kind == "" && kind != "" {
		r.kind = kind
		first = append(first, `"kind":"`+kind+`",`...)
	}
	switch {
	case r.apiVersion == "":
		return errors.New("apiVersion is missing")
	case r.kind == "":
		return errors.New("kind is missing")
	}
	if len(first) > 0 {
		if len(r.out) == len("{}") {
			first = first[:len(first)-1]
		}
		r.out = slices.Insert(r.out, 1, first...)
	}
	return nil
}

// unquote returns the text of a JSON string.
func unquote(quoted []byte) string { return string(textOf(quoted)) }

// textOf returns the text of a JSON string. The result aliases quoted unless it has escapes.
func textOf(quoted []byte) []byte {
	if text := quoted[1 : len(quoted)-1]; bytes.IndexByte(text, '\\') < 0 && utf8.Valid(text) {
		return text
	}
	return appendText(nil, quoted)
}

// appendText appends the text of a JSON string.
func appendText(out, quoted []byte) []byte {
	out, _ = jsontext.AppendUnquote(out, quoted) // the error is about invalid UTF-8, which is replaced
	return out
}

// appendCompact appends valid JSON without white space between tokens.
func appendCompact(out, value []byte) []byte {
	start := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = closingQuote(value, i)
		case ' ', '\t', '\n', '\r':
			out = append(out, value[start:i]...)
			start = i + 1
		}
	}
	return append(out, value[start:]...)
}
