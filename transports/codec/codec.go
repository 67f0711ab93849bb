// Package codec encodes questions of the port as messages of the gRPC contract, and decodes answers
// and errors from them. All transports of the contract share it.
//
// It opens no connection. Messages share the bytes of the engine's objects; receivers must not
// change them. Answers come from hooks, which are not trusted: the package rejects a message that
// the contract allows and the port does not, and package plan validates the content. All functions
// are safe for concurrent use. The suite of package transporttest covers the package.
package codec

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"github.com/hookloop/hookloop/internal/protocol/methods"
	"google.golang.org/protobuf/proto"
)

// MaxMessageBytes bounds an answer, and a question that is not sent in parts.
const MaxMessageBytes = 16 << 20

// Call is the request of one call, and an empty response of the method's type.
type Call struct {
	Request, Response proto.Message
}

// New encodes a question. Use [Meta] for the request's meta.
func New(q *hook.Question, meta *hookv1.RequestMeta) Call { return write(q, meta, whole{}) }

// NewEnvelope encodes a question without its objects: its groups are empty. Use [StreamMeta] for
// the request's meta.
func NewEnvelope(q *hook.Question, meta *hookv1.RequestMeta) proto.Message {
	return write(q, meta, envelope{}).Request
}

// Method returns the full name of the method for an operation of a kind of controller:
// "/hookloop.composite.v1.CompositeHookService/Sync".
func Method(k hook.ControllerKind, op hook.Op) string {
	return "/" + k.Descriptor().Service + "/" + strings.ToUpper(string(op[:1])) + string(op[1:])
}

// operation is an operation of a kind of controller.
type operation struct {
	kind hook.ControllerKind
	op   hook.Op
}

// operations has the methods of all operations in the table of kinds. It panics if the contract
// does not have a service for a kind.
var operations = sync.OnceValue(func() map[operation]*methods.Method {
	all := map[operation]*methods.Method{}
	for _, k := range hook.Descriptors() {
		for _, op := range k.Operations {
			name := Method(k.ControllerKind, op)
			m := methods.Find(name)
			if m == nil {
				panic("codec: no method " + name + " is linked into the program")
			}
			all[operation{k.ControllerKind, op}] = m
		}
	}
	return all
})

// write encodes a question in the fields that its method has.
func write(q *hook.Question, meta *hookv1.RequestMeta, w writer) Call {
	m, found := operations()[operation{q.Kind, q.Op}]
	if !found {
		panic(fmt.Sprintf("codec: %s controllers have no operation %q", q.Kind, q.Op))
	}
	request := m.NewRequest()
	fields := m.Fields(request)
	*fields.Meta = meta
	*fields.Controller = w.object(q.Controller)
	*fields.Parent = w.object(q.Parent)
	if fields.Children != nil {
		*fields.Children = groups(q.Children, w)
	}
	if fields.Related != nil {
		*fields.Related = related(q.Related, w)
	}
	if fields.MapKey != nil {
		*fields.MapKey = q.MapKey
	}
	if fields.Input != nil && q.Input != nil {
		*fields.Input = w.object(q.Input)
	}
	return Call{Request: request, Response: m.NewResponse()}
}
