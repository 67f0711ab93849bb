// Package decode unmarshals protobuf messages of peers that are not trusted. It walks the wire
// format first, and estimates the memory that the message takes once it is built; a message over
// its limit is refused before anything is allocated.
//
// It is not for validating content: the reader of the message decides on the content of its fields.
// Its data comes from gRPC and from fragments of streams. It is pure, and safe for concurrent use.
// Tests fill each repeated field of each message with empty elements, and compare the estimate with
// what building the message allocates.
package decode

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits bound one message.
type Limits struct {
	// Memory bounds the estimate, in bytes.
	Memory uint64
	// Elements bounds repeated fields and maps by their full names; all elements in one message
	// count, in however many messages inside it they are.
	Elements map[protoreflect.FullName]int
}

// LimitError reports that a message is over a limit. Nothing was built.
type LimitError struct {
	Message protoreflect.FullName
	// Field is empty if the estimate as a whole is too large.
	Field protoreflect.FullName
	Limit uint64
}

// Error names the message, the field and the limit.
func (e *LimitError) Error() string {
	if e.Field != "" {
		return fmt.Sprintf("%s: %s has more than %d elements", e.Message, e.Field.Name(), e.Limit)
	}
	return fmt.Sprintf("%s: takes more than %d bytes of memory", e.Message, e.Limit)
}

// Unmarshal builds a message, unless it is over a limit (*LimitError) or malformed. Unknown fields
// are dropped.
func Unmarshal(data []byte, m proto.Message, l Limits) error {
	if _, err := Estimate(data, m.ProtoReflect().Descriptor(), l); err != nil {
		return err
	}
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
}

// Estimate returns about how many bytes a message takes once it is built, without building it.
func Estimate(data []byte, d protoreflect.MessageDescriptor, l Limits) (uint64, error) {
	w := walk{Limits: l, root: d.FullName(), counted: map[protoreflect.FullName]int{}}
	if err := w.message(data, d); err != nil {
		return 0, err
	}
	return w.memory, nil
}

// walk is one pass over a message.
type walk struct {
	Limits
	root    protoreflect.FullName
	memory  uint64
	counted map[protoreflect.FullName]int
}

// message counts a message and its fields. It recurses only into messages that descriptors nest.
func (w *walk) message(data []byte, d protoreflect.MessageDescriptor) error {
	t := typeOf(d)
	if err := w.take(t.memory); err != nil {
		return err
	}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return fmt.Errorf("%s: %w", w.root, protowire.ParseError(n))
		}
		data = data[n:]
		length := protowire.ConsumeFieldValue(number, kind, data)
		if length < 0 {
			return fmt.Errorf("%s: %w", w.root, protowire.ParseError(length))
		}
		if f := t.fields[number]; f != nil {
			if err := w.field(f, kind, data[:length]); err != nil {
				return err
			}
		}
		data = data[length:]
	}
	return nil
}

// field counts one occurrence of a field. A singular message that occurs again counts again: it is
// merged into the first.
func (w *walk) field(f *field, kind protowire.Type, value []byte) error {
	content := value
	if kind == protowire.BytesType {
		content, _ = protowire.ConsumeBytes(value)
	}
	elements := 1
	switch {
	case f.message != nil && kind == protowire.BytesType:
		if err := w.message(content, f.message); err != nil {
			return err
		}
	case f.packable && kind == protowire.BytesType:
		elements = packed(content, f.wire)
	default:
		if err := w.take(uint64(len(content))); err != nil {
			return err
		}
	}
	if !f.repeated {
		return nil
	}
	if limit, found := w.Elements[f.name]; found {
		w.counted[f.name] += elements
		if w.counted[f.name] > limit {
			//nolint:gosec // limits are not negative
			return &LimitError{Message: w.root, Field: f.name, Limit: uint64(limit)}
		}
	}
	return w.take(uint64(elements) * elementBytes)
}

func (w *walk) take(bytes uint64) error {
	w.memory += bytes
	if w.memory > w.Memory {
		return &LimitError{Message: w.root, Limit: w.Memory}
	}
	return nil
}

// packed returns the number of numbers in a packed field.
func packed(content []byte, wire protowire.Type) int {
	switch wire {
	case protowire.Fixed32Type:
		return len(content) / 4
	case protowire.Fixed64Type:
		return len(content) / 8
	}
	n := 0
	for _, b := range content { // the last byte of each varint has its high bit clear
		if b < 0x80 {
			n++
		}
	}
	return n
}

const (
	// messageBytes is what a message takes beside its fields, and fieldBytes a field at most: a
	// string or a slice.
	messageBytes = 48
	fieldBytes   = 24
	// elementBytes is what an element takes in its slice, which grows by doubling; entryBytes is
	// for an entry of a map.
	elementBytes = 48
	entryBytes   = 160
)

// messageType holds the properties of a message's type.
type messageType struct {
	memory uint64
	fields map[protowire.Number]*field
}

type field struct {
	name     protoreflect.FullName
	message  protoreflect.MessageDescriptor // nil for scalars
	repeated bool
	packable bool
	wire     protowire.Type // of a number
}

var types sync.Map // of protoreflect.FullName to *messageType; descriptors are few, and part of the program

func typeOf(d protoreflect.MessageDescriptor) *messageType {
	if known, ok := types.Load(d.FullName()); ok {
		return known.(*messageType) // nothing else is stored
	}
	t := &messageType{memory: messageBytes, fields: map[protowire.Number]*field{}}
	if d.IsMapEntry() {
		t.memory = entryBytes
	}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		t.memory += fieldBytes
		t.fields[f.Number()] = &field{
			name:     f.FullName(),
			message:  f.Message(),
			repeated: f.Cardinality() == protoreflect.Repeated,
			packable: f.IsList() && f.Message() == nil && f.Kind() != protoreflect.StringKind &&
				f.Kind() != protoreflect.BytesKind,
			wire: wireOf(f.Kind()),
		}
	}
	actual, _ := types.LoadOrStore(d.FullName(), t)
	return actual.(*messageType) // as above
}

func wireOf(kind protoreflect.Kind) protowire.Type {
	switch kind {
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind, protoreflect.FloatKind:
		return protowire.Fixed32Type
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind, protoreflect.DoubleKind:
		return protowire.Fixed64Type
	default:
		return protowire.VarintType
	}
}
