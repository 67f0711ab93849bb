// Package methods finds the fields of the contract's requests and responses that hold objects, so
// that codec and streams need no code for a single kind of controller.
//
// Use [Find] with the full name of a method:
//
//	m := methods.Find("/hookloop.composite.v1.CompositeHookService/Sync")
//	request := m.NewRequest()
//	*m.Fields(request).Parent = parent
//
// The package reads the generated types once, when it is first asked. All functions are safe for
// concurrent use.
package methods

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"strings"
	"sync"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Method describes the messages of one method that hooks implement. It does not change.
type Method struct {
	// Name is the full name, such as /hookloop.composite.v1.CompositeHookService/Sync.
	Name string

	request, response protoreflect.MessageType
	fields            fieldIndex
	// desired is the index of the field with the response's desired objects, or noField.
	desired int
	// desiredName is how the contract calls this field.
	desiredName string
}

// Fields holds pointers to the fields of one request. A pointer is nil if this method's requests lack
// the field.
type Fields struct {
	Meta               **hookv1.RequestMeta
	Controller, Parent **hookv1.ObservedObject
	// Input and MapKey tell which input of a map controller the question is about.
	Input  **hookv1.ObservedObject
	MapKey *string
	// Children are the observed children, attachments or outputs.
	Children *[]*hookv1.ObjectGroup
	Related  *[]*hookv1.RelatedGroup
}

// Find returns a method by its full name; nil if no hook implements a method of this name.
func Find(name string) *Method { return table().byName[name] }

// Of returns the method that is answered with responses of this type; nil if there is none.
func Of(response proto.Message) *Method {
	return table().byResponse[response.ProtoReflect().Descriptor().FullName()]
}

// All returns the full names of the methods that hooks implement, in no order.
func All() iter.Seq[string] { return maps.Keys(table().byName) }

// NewRequest returns an empty request.
func (m *Method) NewRequest() proto.Message { return m.request.New().Interface() }

// NewResponse returns an empty response.
func (m *Method) NewResponse() proto.Message { return m.response.New().Interface() }

// Fields returns the fields of a request. It panics if the request is not of the method's type.
func (m *Method) Fields(request proto.Message) Fields {
	v := valueOf(request, m.request)
	return Fields{
		Meta:       at[*hookv1.RequestMeta](v, m.fields.meta),
		Controller: at[*hookv1.ObservedObject](v, m.fields.controller),
		Parent:     at[*hookv1.ObservedObject](v, m.fields.parent),
		Input:      at[*hookv1.ObservedObject](v, m.fields.input),
		MapKey:     at[string](v, m.fields.mapKey),
		Children:   at[[]*hookv1.ObjectGroup](v, m.fields.children),
		Related:    at[[]*hookv1.RelatedGroup](v, m.fields.related),
	}
}

// Outputs reports whether the children are a map controller's outputs.
func (m *Method) Outputs() bool { return m.fields.outputs }

// Desired returns a pointer to a response's desired objects, and the name of their field. The pointer
// is nil if this method's responses have no such field. Desired panics if the response belongs to
// another method.
func (m *Method) Desired(response proto.Message) (objects *[]*hookv1.DesiredObject, field string) {
	return at[[]*hookv1.DesiredObject](valueOf(response, m.response), m.desired), m.desiredName
}

// noField stands for a field that a message lacks.
const noField = -1

// fieldIndex says where a request's fields are in its Go struct.
type fieldIndex struct {
	meta, controller, parent, input, mapKey, children, related int
	outputs                                                    bool
}

func valueOf(m proto.Message, want protoreflect.MessageType) reflect.Value {
	if got := m.ProtoReflect().Type(); got != want {
		panic(fmt.Sprintf("methods: got a %s, expected a %s",
			got.Descriptor().FullName(), want.Descriptor().FullName()))
	}
	return reflect.ValueOf(m).Elem()
}

// at points to a field of a message.
func at[T any](message reflect.Value, field int) *T {
	if field == noField {
		return nil
	}
	return message.Field(field).Addr().Interface().(*T)
}

type tables struct {
	byName     map[string]*Method
	byResponse map[protoreflect.FullName]*Method
}

// table reads the services that are linked into the program.
var table = sync.OnceValue(func() tables {
	all := tables{byName: map[string]*Method{}, byResponse: map[protoreflect.FullName]*Method{}}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			all.add(file.Services().Get(i))
		}
		return true
	})
	return all
})

// add adds the methods of a service, if hooks implement it.
func (t tables) add(service protoreflect.ServiceDescriptor) {
	if !IsHookService(service) {
		return
	}
	for i := range service.Methods().Len() {
		m := newMethod(service.Methods().Get(i))
		t.byName[m.Name] = m
		t.byResponse[m.response.Descriptor().FullName()] = m
	}
}

// IsHookService reports whether hooks implement a service and are called once for each question.
// The names of such services end in HookService.
func IsHookService(service protoreflect.ServiceDescriptor) bool {
	for i := range service.Methods().Len() {
		m := service.Methods().Get(i)
		if m.IsStreamingClient() || m.IsStreamingServer() {
			return false
		}
	}
	return strings.HasPrefix(string(service.FullName()), "hookloop.") &&
		strings.HasSuffix(string(service.Name()), "HookService")
}

func newMethod(d protoreflect.MethodDescriptor) *Method {
	m := &Method{
		Name:     "/" + string(d.Parent().FullName()) + "/" + string(d.Name()),
		request:  typeOf(d.Input()),
		response: typeOf(d.Output()),
		desired:  noField,
	}
	m.fields = requestFields(m.request)
	for i, f := range structFields(m.response) {
		if f.Type == reflect.TypeFor[[]*hookv1.DesiredObject]() {
			m.desired = i
			m.desiredName = strings.ToLower(f.Name)
		}
	}
	return m
}

// requestFields finds the fields of a request by their Go types. The controller and the input are
// known by their names; the parent is the other object, because decorators call it differently.
func requestFields(request protoreflect.MessageType) fieldIndex {
	x := fieldIndex{noField, noField, noField, noField, noField, noField, noField, false}
	for i, f := range structFields(request) {
		switch f.Type {
		case reflect.TypeFor[*hookv1.RequestMeta]():
			x.meta = i
		case reflect.TypeFor[*hookv1.ObservedObject]():
			switch f.Name {
			case "Controller":
				x.controller = i
			case "Input":
				x.input = i
			default:
				x.parent = i
			}
		case reflect.TypeFor[string]():
			if f.Name == "MapKey" {
				x.mapKey = i
			}
		case reflect.TypeFor[[]*hookv1.ObjectGroup]():
			x.children = i
			x.outputs = f.Name == "Outputs"
		case reflect.TypeFor[[]*hookv1.RelatedGroup]():
			x.related = i
		}
	}
	return x
}

// structFields returns the fields of the Go struct of a message, by index.
func structFields(m protoreflect.MessageType) iter.Seq2[int, reflect.StructField] {
	t := reflect.TypeOf(m.Zero().Interface()).Elem()
	return func(yield func(int, reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(i, t.Field(i)) {
				return
			}
		}
	}
}

// typeOf returns the Go type of a message. Generated code registers it together with its file.
func typeOf(d protoreflect.MessageDescriptor) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		panic(fmt.Sprintf("methods: %s: %v", d.FullName(), err))
	}
	return t
}
