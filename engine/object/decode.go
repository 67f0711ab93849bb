package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
)

// Decode reads one API object from JSON. It keeps no reference to data. The error describes
// the fault of the JSON, or names the missing one of apiVersion and kind. A missing name is no
// error, because lists and bookmarks have none.
func Decode(data []byte) (*Object, error) {
	return DecodeAs(schema.GroupVersionKind{}, data)
}

// DecodeAs is Decode for an item of a list, which may omit the apiVersion and kind of all items:
// gvk is their default.
func DecodeAs(gvk schema.GroupVersionKind, data []byte) (*Object, error) {
	parts, err := split(data)
	if err != nil {
		return nil, err
	}
	if err := parts.complete(gvk); err != nil {
		return nil, err
	}
	o := &Object{gvk: schema.FromAPIVersionAndKind(parts.apiVersion, parts.kind)}
	// Names are case-sensitive, as for the API server and unlike in encoding/json.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(parts.metadata, &o.meta); err != nil {
		return nil, fmt.Errorf("metadata: %w", err)
	}
	lastApplied, carries := o.meta.Annotations[LastAppliedAnnotation]
	if carries || o.meta.ManagedFields != nil {
		o.lastApplied = lastApplied
		o.forget()
		if err := parts.trimMetadata(); err != nil {
			return nil, err
		}
	}
	o.raw = parts.join()
	o.hash = maphash.Bytes(hashSeed, o.raw)
	return o, nil
}

// FromMap makes an Object from a decoded one, as Decode does from JSON.
func FromMap(m map[string]any) (*Object, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}

// Map decodes the whole object into a fresh map that the caller owns. Integers are int64, as API
// machinery expects; 2^53+1 survives.
func (o *Object) Map() (map[string]any, error) { return DecodeMap(o.raw) }

// DecodeMap decodes a JSON object; integers are int64.
func DecodeMap(data []byte) (map[string]any, error) {
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return nil, Explain(err)
	}
	if m == nil {
		return nil, errors.New("got null, expected a JSON object")
	}
	return m, nil
}

// Field finds one field by its path without decoding the rest. It returns the field's JSON, which
// the caller must not change, and false if a step of the path is absent or no object.
func (o *Object) Field(path ...string) ([]byte, bool) {
	value := jsontext.Value(o.raw)
	for _, name := range path {
		var found bool
		if value, found = member(value, name); !found {
			return nil, false
		}
	}
	return value, true
}

// member returns the value of one member of a JSON object.
func member(value jsontext.Value, name string) (jsontext.Value, bool) {
	var found jsontext.Value
	err := eachMember(value, func(key string, v jsontext.Value) error {
		if key == name {
			found = v
			return errStop
		}
		return nil
	})
	return found, found != nil && (err == nil || errors.Is(err, errStop))
}

// forget drops from the decoded metadata what does not stay in the body. Of managedFields it keeps
// the fields that server-side apply has applied.
func (o *Object) forget() {
	for _, m := range o.meta.ManagedFields {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.FieldsV1 != nil {
			o.applied = append(o.applied, applied{m.Manager, m.FieldsV1.GetRawBytes()})
		}
	}
	o.meta.ManagedFields = nil
	delete(o.meta.Annotations, LastAppliedAnnotation)
	if len(o.meta.Annotations) == 0 {
		o.meta.Annotations = nil
	}
}

var errStop = errors.New("stop")

// eachMember calls visit for each member of a JSON object, with views into data.
func eachMember(data []byte, visit func(key string, value jsontext.Value) error) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if kind := d.PeekKind(); kind != '{' {
		if _, err := d.ReadValue(); err != nil {
			return err
		}
		return fmt.Errorf("got %s, expected a JSON object", kindName(kind))
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		key := name.String()
		value, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := visit(key, value); err != nil {
			return err
		}
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("trailing data after the JSON object")
	}
	return nil
}

// kindName names a JSON value for a message.
func kindName(kind jsontext.Kind) string {
	switch kind {
	case 'n':
		return "null"
	case '"':
		return "a string"
	case '0':
		return "a number"
	case '[':
		return "an array"
	case 't', 'f':
		return "a boolean"
	default:
		return "no JSON value"
	}
}

// parts are the members of an object's JSON, in their order.
type parts struct {
	apiVersion, kind string
	metadata         []byte
	members          []part
	size             int
}

type part struct {
	key   string
	value []byte
}

// split copies data, compacts it and cuts it into its top-level members.
func split(data []byte) (*parts, error) {
	p := &parts{metadata: []byte("{}")}
	err := eachMember(data, func(key string, value jsontext.Value) error {
		kept := append([]byte(nil), value...)
		switch key {
		case "apiVersion", "kind":
			if err := p.setTypeMember(key, kept); err != nil {
				return err
			}
		case "metadata":
			p.metadata = kept
		}
		p.members = append(p.members, part{key, kept})
		p.size += len(key) + len(kept) + 4
		return nil
	})
	return p, err
}

// complete adds apiVersion and kind if they are absent and known.
func (p *parts) complete(gvk schema.GroupVersionKind) error {
	apiVersion, kind := gvk.ToAPIVersionAndKind()
	if p.kind == "" && kind != "" {
		p.kind = kind
		p.members = append([]part{{"kind", []byte(`"` + kind + `"`)}}, p.members...)
	}
	if p.apiVersion == "" && apiVersion != "" {
		p.apiVersion = apiVersion
		p.members = append([]part{{"apiVersion", []byte(`"` + apiVersion + `"`)}}, p.members...)
	}
	switch {
	case p.apiVersion == "":
		return errors.New("apiVersion is missing")
	case p.kind == "":
		return errors.New("kind is missing")
	}
	return nil
}

func (p *parts) setTypeMember(key string, value []byte) error {
	target := &p.apiVersion
	if key == "kind" {
		target = &p.kind
	}
	if err := json.Unmarshal(value, target); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

// trimMetadata rewrites the metadata member without managedFields and LastAppliedAnnotation.
func (p *parts) trimMetadata() error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(p.metadata, &members); err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	delete(members, "managedFields")
	if err := trimAnnotations(members); err != nil {
		return err
	}
	trimmed, err := json.Marshal(members)
	if err != nil {
		return fmt.Errorf("metadata: %w", err)
	}
	for i := range p.members {
		if p.members[i].key == "metadata" {
			p.members[i].value = trimmed
		}
	}
	return nil
}

func trimAnnotations(members map[string]json.RawMessage) error {
	raw, ok := members["annotations"]
	if !ok {
		return nil
	}
	var annotations map[string]string
	if err := json.Unmarshal(raw, &annotations); err != nil {
		return fmt.Errorf("metadata.annotations: %w", err)
	}
	delete(annotations, LastAppliedAnnotation)
	if len(annotations) == 0 {
		delete(members, "annotations")
		return nil
	}
	trimmed, err := json.Marshal(annotations)
	if err != nil {
		return fmt.Errorf("metadata.annotations: %w", err)
	}
	members["annotations"] = trimmed
	return nil
}

// join writes the members as one compact JSON object.
func (p *parts) join() []byte {
	out := bytes.NewBuffer(make([]byte, 0, p.size+2))
	out.WriteByte('{')
	for i, m := range p.members {
		if i > 0 {
			out.WriteByte(',')
		}
		key, err := jsontext.AppendQuote(nil, m.key)
		if err != nil { // invalid UTF-8 was replaced already, and its quoting is still valid JSON
			key = []byte(`"` + m.key + `"`)
		}
		out.Write(key)
		out.WriteByte(':')
		value := jsontext.Value(m.value)
		if err := value.Compact(); err == nil {
			out.Write(value)
		} else {
			out.Write(m.value)
		}
	}
	out.WriteByte('}')
	return out.Bytes()
}

var _ metav1.Object = (*metav1.ObjectMeta)(nil)
