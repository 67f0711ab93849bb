package object

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	kjson "sigs.k8s.io/json"
)

// Decode reads an API object from JSON. It does not keep data. It returns an error if the JSON is
// invalid, or if apiVersion or kind is missing. A missing name is accepted, because lists and
// bookmarks do not have one. To read the items of a list, use [DecodeAs].
func Decode(data []byte) (*Object, error) {
	return DecodeAs(schema.GroupVersionKind{}, data)
}

// DecodeAs reads an API object like [Decode], but uses gvk where apiVersion and kind are missing.
// The API server omits both from the items of a list.
func DecodeAs(gvk schema.GroupVersionKind, data []byte) (*Object, error) {
	r := newReader(data)
	defer r.release()
	if err := r.object(); err != nil {
		return nil, err
	}
	if r.unusual {
		var meta metav1.ObjectMeta
		// Names are case-sensitive, as for the API server and unlike in encoding/json.
		if err := kjson.UnmarshalCaseSensitivePreserveInts(r.metadata(), &meta); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		r.meta = metadataOf(&meta)
	}
	applied, err := appliedFields(r.managedFields)
	if err != nil {
		return nil, err
	}
	if err := r.complete(gvk); err != nil {
		return nil, err
	}
	return r.make(applied), nil
}

// make builds the object from what was read.
func (r *reader) make(applied []applied) *Object {
	m := &r.meta
	o := &Object{
		place: placeOf(schema.FromAPIVersionAndKind(r.apiVersion, r.kind), m.namespace), generation: m.generation,
		labels: m.labels, owners: m.owners, deleting: m.deleting, hasLastApplied: len(r.lastApplied) > 0,
	}
	if m.annotations != nil || m.finalizers != nil || applied != nil {
		o.extra = &extra{m.annotations, m.finalizers, applied}
	}
	r.scratch = append(append(append(r.scratch[:0], m.name...), m.uid...), m.resourceVersion...)
	o.names = string(r.scratch)
	//nolint:gosec // no text has four gigabytes
	o.nameEnd, o.uidEnd, o.size = uint32(len(m.name)), uint32(len(m.name)+len(m.uid)), uint32(len(r.out))
	r.scratch = r.scratch[:0]
	if o.hasLastApplied {
		r.scratch = appendPacked(r.scratch, r.out, r.lastApplied)
	}
	o.body = append(append(make([]byte, 0, len(r.out)+len(r.scratch)), r.out...), r.scratch...)
	return o
}

// FromMap makes an Object from a decoded one. It encodes m, so later changes of m have no effect.
func FromMap(m map[string]any) (*Object, error) {
	data, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return Decode(data)
}

// Map decodes the whole object into a new map, which the caller may change. Integers become int64,
// as apimachinery's unstructured package expects, so large ones keep all digits.
func (o *Object) Map() (map[string]any, error) { return DecodeMap(o.Raw()) }

// DecodeMap decodes a JSON object into a new map. Integers become int64.
func DecodeMap(data []byte) (map[string]any, error) {
	if m, ok := jsonmap.Decode(data); ok {
		return m, nil
	}
	var m map[string]any
	if err := utiljson.Unmarshal(data, &m); err != nil {
		return nil, Explain(err)
	}
	if m == nil {
		return nil, errors.New("got null, expected a JSON object")
	}
	return m, nil
}

// Field returns the JSON of the field at path without decoding the rest of the object. It returns
// false if the field does not exist. The caller must not change the result.
func (o *Object) Field(path ...string) ([]byte, bool) {
	value := jsontext.Value(o.Raw())
	for _, name := range path {
		var found bool
		value, found = member(value, name)
		if !found {
			return nil, false
		}
	}
	return value, true
}

// member returns the value of a member of a JSON object.
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

// applyOperation appears in managedFields whenever a manager has used server-side apply.
var applyOperation = []byte(`"` + metav1.ManagedFieldsOperationApply + `"`)

// appliedFields returns the entries of managedFields that come from server-side apply.
func appliedFields(managedFields []byte) (all []applied, err error) {
	if managedFields == nil {
		return nil, nil
	}
	var entries []metav1.ManagedFieldsEntry
	if err := kjson.UnmarshalCaseSensitivePreserveInts(managedFields, &entries); err != nil {
		return nil, fmt.Errorf("metadata.managedFields: %w", err)
	}
	for _, m := range entries {
		if m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.FieldsV1 != nil {
			all = append(all, applied{m.Manager, m.FieldsV1.GetRawBytes()})
		}
	}
	return all, nil
}

var errStop = errors.New("stop")

// eachMember calls visit for each member of a JSON object. The values alias data.
func eachMember(data []byte, visit func(key string, value jsontext.Value) error) error {
	r := newReader(data)
	defer r.release()
	return r.whole(func(name []byte) error {
		value, err := r.d.ReadValue()
		if err != nil {
			return err
		}
		return visit(unquote(name), value)
	})
}

// kindName returns the name of a JSON type for messages.
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
