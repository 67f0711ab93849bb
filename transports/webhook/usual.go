package webhook

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hookloop/hookloop/engine/object"
)

// usual are the fields of a usual answer: a status, objects, and no details.
type usual struct {
	status json.RawMessage
	// items are the objects; nil if the answer has no list of them.
	items       []json.RawMessage
	resyncAfter float64
	finalized   bool
}

// readUsual reads an answer with objects in the field items, in one pass, and copies its parts. It
// returns false for an answer that is invalid, or that has another field, a field twice, or a value
// of another type: unmarshal then has the answer or the error.
func readUsual(data []byte, items string) (usual, bool) {
	if object.Deeper(data, maxDepth) {
		return usual{}, false
	}
	r := usualReader{
		d: jsontext.NewDecoder(bytes.NewBuffer(data),
			jsontext.AllowInvalidUTF8(true), jsontext.AllowDuplicateNames(true)), // as encoding/json
		items: items,
	}
	if !r.token('{') {
		return usual{}, false
	}
	for r.d.PeekKind() == '"' {
		if !r.member() {
			return usual{}, false
		}
	}
	if !r.token('}') {
		return usual{}, false
	}
	_, err := r.d.ReadToken()
	return r.usual, errors.Is(err, io.EOF)
}

// usualReader reads one answer.
type usualReader struct {
	d     *jsontext.Decoder
	items string
	// resync and finalizes report that their fields were read.
	resync, finalizes bool
	usual
}

func (r *usualReader) token(kind jsontext.Kind) bool {
	t, err := r.d.ReadToken()
	return err == nil && t.Kind() == kind
}

func (r *usualReader) member() bool {
	name, err := r.d.ReadToken()
	if err != nil {
		return false
	}
	switch field := name.String(); {
	case field == "status" && r.status == nil:
		return r.object(&r.status)
	case field == r.items && r.usual.items == nil:
		return r.list()
	case field == "resyncAfterSeconds" && r.d.PeekKind() == '0' && !r.resync:
		r.resync = true
		var number jsontext.Value
		number, err = r.d.ReadValue()
		if err == nil {
			r.resyncAfter, err = strconv.ParseFloat(string(number), 64)
		}
		return err == nil
	case field == "finalized" && !r.finalizes:
		r.finalizes = true
		t, err := r.d.ReadToken()
		r.finalized = t.Kind() == 't'
		return err == nil && (t.Kind() == 't' || t.Kind() == 'f')
	}
	return false
}

// object copies an object.
func (r *usualReader) object(into *json.RawMessage) bool {
	value, err := r.d.ReadValue()
	*into = bytes.Clone(value)
	return err == nil && value.Kind() == '{'
}

// list copies a list of objects.
func (r *usualReader) list() bool {
	r.usual.items = []json.RawMessage{}
	if !r.token('[') {
		return false
	}
	for r.d.PeekKind() == '{' {
		var item json.RawMessage
		if !r.object(&item) {
			return false
		}
		r.usual.items = append(r.usual.items, item)
	}
	return r.token(']')
}
