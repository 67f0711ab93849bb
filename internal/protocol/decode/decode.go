// Package decode unmarshals protobuf messages from peers that are not trusted. A small message on
// the wire can take a lot of memory once it is decoded. [Unmarshal] therefore estimates this memory
// from the wire format first, and rejects a message that exceeds its [Limits] before it allocates
// anything.
//
// The package does not check the content of fields; whoever reads the message must do that. All
// functions are safe for concurrent use.
package decode

import (
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits limits one message.
type Limits struct {
	// Memory limits the estimate, in bytes.
	Memory uint64
	// Elements limits repeated fields and maps by their full names. Elements are counted over the
	// whole message, including nested messages.
	Elements map[protoreflect.FullName]int
}

// LimitError is returned if a message exceeds a limit.
type LimitError struct {
	Message protoreflect.FullName
	// Field is empty if the whole message is too large.
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

// Unmarshal decodes a message. It returns a *LimitError if the message exceeds a limit, and another
// error if it is malformed. Unknown fields are dropped.
func Unmarshal(data []byte, m proto.Message, l Limits) error {
	if _, err := Estimate(data, m.ProtoReflect().Descriptor(), l); err != nil {
		return err
	}
	return proto.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, m)
}

// Estimate returns about how many bytes a message will take in memory, without decoding it.
func Estimate(data []byte, d protoreflect.MessageDescriptor, l Limits) (uint64, error) {
	w := walk{Limits: l, root: d.FullName(), counted: map[protoreflect.FullName]int{}}
	if err := w.message(data, d); err != nil {
		return 0, err
	}
	return w.memory, nil
}

// walk counts what one message contains.
type walk struct {
	Limits
	root    protoreflect.FullName
	memory  uint64
	counted map[protoreflect.FullName]int
}

// message counts a message and its fields. The recursion is limited by the nesting in descriptors.
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

// field counts one occurrence of a field. If a singular message occurs several times, all are
// counted, because they are merged.
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

// packed returns how many numbers a packed field contains.
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
	// messageBytes is what a message takes in addition to its fields. fieldBytes is the most that a
	// field takes: a string or a slice.
	messageBytes = 48
	fieldBytes   = 24
	// elementBytes is what an element takes in its slice, which grows by doubling. entryBytes is
	// what a map entry takes.
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

var types sync.Map // protoreflect.FullName → *messageType; the program has few descriptors

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
