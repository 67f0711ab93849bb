package codec

import (
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// largeQuestion is the size in bytes above which an encoded question refers to the JSON of its
	// objects in the cache. A copy would take that memory and its time for each question.
	largeQuestion = 64 << 10
	// minInserted is the size in bytes of the JSON of an object from which on it is worth a reference.
	minInserted = 128
	// headerBytes is the usual size of an object's message without its JSON.
	headerBytes = 192
)

// The numbers of fields that are encoded without their messages.
const (
	groupObjects protowire.Number = 3 // of ObjectGroup
	relatedItems protowire.Number = 5 // of RelatedGroup
	itemsObjects protowire.Number = 1 // of RelatedItems
)

// Encoded holds the request of one call in a form that [Codec] sends. It does not change.
type Encoded struct {
	// Response is an empty response of the method's type.
	Response proto.Message

	// message is that of a small question, which gRPC's codec encodes in a buffer of its pool.
	message proto.Message
	buffers mem.BufferSlice
}

// Size returns the length in bytes.
func (e *Encoded) Size() int {
	if e.message != nil {
		return proto.Size(e.message)
	}
	return e.buffers.Len()
}

// Encode encodes a question: a large one without a message for each object, and with references to
// the bytes of the engine's objects. The bytes are those of New's request.
func Encode(q *hook.Question, meta *hookv1.RequestMeta) (*Encoded, error) {
	objects, size := objectsOf(q)
	if size <= largeQuestion {
		call := New(q, meta)
		return &Encoded{Response: call.Response, message: call.Request}, nil
	}
	shallow := *q
	shallow.Children = nil
	shallow.Related = nil
	call := New(&shallow, nil)
	w := questionWriter{
		text:     make([]byte, 0, objects*headerBytes+q.Parent.Size()+q.Controller.Size()),
		inserted: make([]insertion, 0, objects),
	}
	w.message(call.Request)
	fields := call.Request.ProtoReflect().Descriptor().Fields()
	if field := fields.ByName(protoreflect.Name(q.Kind.Descriptor().ChildrenField)); field != nil {
		w.children(field.Number(), q.Children)
	}
	if field := fields.ByName("related"); field != nil {
		w.related(field.Number(), q.Related)
	}
	if meta != nil { // the last field of every request
		w.length(fields.ByName("meta").Number(), proto.Size(meta))
		w.message(meta)
	}
	if w.err != nil {
		return nil, w.err
	}
	return &Encoded{Response: call.Response, buffers: w.buffers()}, nil
}

// objectsOf returns the number of observed and related objects, and the size of their JSON.
func objectsOf(q *hook.Question) (n, size int) {
	add := func(g hook.Group) {
		n += len(g.Objects)
		for _, o := range g.Objects {
			size += o.Size()
		}
	}
	for _, g := range q.Children {
		add(g)
	}
	for _, g := range q.Related {
		add(g.Group)
	}
	return n, size
}

// questionWriter encodes groups of objects.
type questionWriter struct {
	text []byte
	// inserted has the JSON of the objects, instead of text.
	inserted []insertion
	// err is the error of a message.
	err error
	// place is the beginning of the last object's message, of its kind and namespace: most objects of
	// a group have the same.
	place     []byte
	gvk       schema.GroupVersionKind
	namespace string
}

// insertion is JSON that belongs into the text at a place.
type insertion struct {
	at  int
	raw []byte
}

// message appends a message, and returns its size.
func (w *questionWriter) message(m proto.Message) int {
	begin := len(w.text)
	text, err := proto.MarshalOptions{}.MarshalAppend(w.text, m)
	if err != nil {
		w.err = err
		return 0
	}
	w.text = text
	return len(text) - begin
}

// children appends one field for each group.
func (w *questionWriter) children(field protowire.Number, list []hook.Group) {
	for i, group := range groups(list, envelope{}) {
		objects := list[i].Objects
		w.length(field, proto.Size(group)+w.objectsSize(groupObjects, objects))
		w.message(group)
		w.objects(groupObjects, objects)
	}
}

// related appends one field for each group.
func (w *questionWriter) related(field protowire.Number, list []hook.RelatedGroup) {
	for i, group := range related(list, envelope{}) {
		if _, read := group.Result.(*hookv1.RelatedGroup_Items); !read {
			w.length(field, proto.Size(group))
			w.message(group)
			continue
		}
		group.Result = nil
		objects := list[i].Objects
		items := w.objectsSize(itemsObjects, objects)
		w.length(field, proto.Size(group)+protowire.SizeTag(relatedItems)+protowire.SizeBytes(items))
		w.message(group)
		w.length(relatedItems, items)
		w.objects(itemsObjects, objects)
	}
}

// length appends the beginning of a field of n bytes.
func (w *questionWriter) length(field protowire.Number, n int) {
	w.text = protowire.AppendTag(w.text, field, protowire.BytesType)
	w.text = protowire.AppendVarint(w.text, uint64(n)) //nolint:gosec // not negative
}

// objectsSize is the size of a field for each object.
func (w *questionWriter) objectsSize(field protowire.Number, list []*object.Object) (n int) {
	for _, o := range list {
		n += protowire.SizeTag(field) + protowire.SizeBytes(w.objectSize(o))
	}
	return n
}

// objects appends a field for each object.
func (w *questionWriter) objects(field protowire.Number, list []*object.Object) {
	for _, o := range list {
		w.length(field, w.objectSize(o))
		w.object(o)
	}
}

// objectSize is the size of an object's message.
func (w *questionWriter) objectSize(o *object.Object) int {
	n := len(w.placeOf(o)) + protowire.SizeTag(8) + protowire.SizeBytes(o.Size())
	for _, text := range texts(o) {
		if text != "" {
			n += protowire.SizeTag(4) + protowire.SizeBytes(len(text))
		}
	}
	return n + len(isJSON)
}

// isJSON is the field 7 of an object's message.
var isJSON = protowire.AppendVarint(protowire.AppendTag(nil, 7, protowire.VarintType),
	uint64(hookv1.Encoding_ENCODING_JSON))

// texts returns the fields 4 to 6 of an object's message.
func texts(o *object.Object) [3]string {
	return [...]string{o.Name(), string(o.UID()), o.ResourceVersion()}
}

// object appends an object's message, as Object makes it. Its texts are UTF-8 (package object).
func (w *questionWriter) object(o *object.Object) {
	w.text = append(w.text, w.placeOf(o)...)
	for i, text := range texts(o) {
		w.text = appendText(w.text, protowire.Number(4+i), text)
	}
	w.text = append(w.text, isJSON...)
	raw := o.Raw()
	w.length(8, len(raw))
	if len(raw) >= minInserted {
		w.inserted = append(w.inserted, insertion{len(w.text), raw})
	} else {
		w.text = append(w.text, raw...)
	}
}

// placeOf returns the fields 1 to 3 of an object's message.
func (w *questionWriter) placeOf(o *object.Object) []byte {
	gvk := o.GVK()
	namespace := o.Namespace()
	if w.place != nil && gvk == w.gvk && namespace == w.namespace {
		return w.place
	}
	w.gvk = gvk
	w.namespace = namespace
	w.place = appendText(w.place[:0], 1, gvk.GroupVersion().String())
	w.place = appendText(w.place, 2, gvk.Kind)
	w.place = appendText(w.place, 3, namespace)
	return w.place
}

// appendText appends a field of text. It appends nothing for an empty one.
func appendText(to []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return to
	}
	return protowire.AppendString(protowire.AppendTag(to, field, protowire.BytesType), text)
}

// buffers returns the whole.
func (w *questionWriter) buffers() mem.BufferSlice {
	slices := make([]mem.SliceBuffer, 0, 2*len(w.inserted)+1)
	from := 0
	for _, i := range w.inserted {
		slices = append(slices, w.text[from:i.at], i.raw)
		from = i.at
	}
	if from < len(w.text) {
		slices = append(slices, w.text[from:])
	}
	buffers := make(mem.BufferSlice, len(slices))
	for i := range slices {
		buffers[i] = &slices[i] // a pointer needs no allocation
	}
	return buffers
}
