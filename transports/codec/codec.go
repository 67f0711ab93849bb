// Package codec converts questions to messages of the gRPC contract, and answers and failures back. A
// transport that carries these messages needs nothing else:
//
//	call := codec.New(question, codec.Meta(config.Engine, ""))
//	body, err := proto.Marshal(call.Request)
//	...
//	answer, status := send(ctx, codec.Method(question.Kind, question.Op), body)
//	if status.Code() != codes.OK {
//		return nil, codec.Failure(name, question, timeout, status)
//	}
//	if err := proto.Unmarshal(answer, call.Response); err != nil {
//		return nil, &hook.Error{Kind: hook.Invalid, Hook: name, Err: err}
//	}
//	decoded, err := codec.Answer(call.Response)
//	if err != nil {
//		return nil, &hook.Error{Kind: hook.Invalid, Hook: name, Err: err}
//	}
//	return decoded, nil
//
// Refuse an answer of more than [MaxMessageBytes], and reserve its memory before you decode it
// ([hook.Config.Reserve]). Messages share the bytes of the engine's objects, so they must not be
// changed. Answers are only decoded here: the engine validates their content. All functions are safe
// for concurrent use.
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

// MaxMessageBytes is the largest size of an answer, and of a question that is not sent in parts.
const MaxMessageBytes = 16 << 20

// Call holds the messages of one call. Send Request, and decode the hook's response into Response.
type Call struct {
	Request, Response proto.Message
}

// New makes the messages of a question. Use [Method] for the name of the method to call, and [Meta] for
// the request's meta.
func New(q *hook.Question, meta *hookv1.RequestMeta) Call { return write(q, meta, whole{}) }

// NewEnvelope makes the request of a question without its objects, for transports that send objects on
// their own. Its groups are empty. Use [StreamMeta] for the request's meta.
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
