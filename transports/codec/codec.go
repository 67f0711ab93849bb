// Package codec encodes questions of the port as messages of the gRPC contract, and decodes answers
// and errors from them. All transports of the contract share it.
//
// It opens no connection. Messages share the bytes of the engine's objects; receivers must not
// change them. Answers come from hooks, which are not trusted: the package rejects a message that
// the contract allows and the port does not, and package plan validates the content. All functions
// are safe for concurrent use. The suite of package transporttest covers the package.
package codec

import (
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"google.golang.org/protobuf/proto"
)

// MaxMessageBytes bounds an answer, and a question that is not sent in parts.
const MaxMessageBytes = 16 << 20

// Call is the request of one call, and an empty response of the method's type.
type Call struct {
	Request, Response proto.Message
}

// New encodes a question.
func New(q *hook.Question) Call { return write(q, whole{}) }

// NewEnvelope encodes a question without its objects: its groups are empty.
func NewEnvelope(q *hook.Question) proto.Message { return write(q, envelope{}).Request }

// Method returns the full name of the method for an operation of a kind of controller:
// "/hookloop.composite.v1.CompositeHookService/Sync".
func Method(k hook.ControllerKind, op hook.Op) string {
	return "/" + k.Descriptor().Service + "/" + strings.ToUpper(string(op[:1])) + string(op[1:])
}

// writers encode the questions of each kind of controller.
var writers = map[hook.ControllerKind]func(*hook.Question, writer) Call{
	hook.Composite: writeComposite,
	hook.Decorator: writeDecorator,
	hook.Mapping:   writeMapping,
}

func write(q *hook.Question, w writer) Call { return writers[q.Kind](q, w) }

func writeComposite(q *hook.Question, w writer) Call {
	controller := w.object(q.Controller)
	parent := w.object(q.Parent)
	switch q.Op {
	case hook.Customize:
		return Call{
			&compositev1.CustomizeRequest{Controller: controller, Parent: parent},
			&compositev1.CustomizeResponse{},
		}
	case hook.Finalize:
		return Call{&compositev1.FinalizeRequest{
			Controller: controller, Parent: parent, Children: groups(q.Children, w), Related: related(q.Related, w),
		}, &compositev1.FinalizeResponse{}}
	default:
		return Call{&compositev1.SyncRequest{
			Controller: controller, Parent: parent, Children: groups(q.Children, w), Related: related(q.Related, w),
		}, &compositev1.SyncResponse{}}
	}
}

func writeDecorator(q *hook.Question, w writer) Call {
	controller := w.object(q.Controller)
	parent := w.object(q.Parent)
	switch q.Op {
	case hook.Customize:
		return Call{
			&decoratorv1.CustomizeRequest{Controller: controller, Object: parent},
			&decoratorv1.CustomizeResponse{},
		}
	case hook.Finalize:
		return Call{&decoratorv1.FinalizeRequest{
			Controller: controller, Object: parent, Attachments: groups(q.Children, w), Related: related(q.Related, w),
		}, &decoratorv1.FinalizeResponse{}}
	default:
		return Call{&decoratorv1.SyncRequest{
			Controller: controller, Object: parent, Attachments: groups(q.Children, w), Related: related(q.Related, w),
		}, &decoratorv1.SyncResponse{}}
	}
}

func writeMapping(q *hook.Question, w writer) Call {
	controller := w.object(q.Controller)
	parent := w.object(q.Parent)
	switch q.Op {
	case hook.Customize:
		return Call{&mapv1.CustomizeRequest{Controller: controller, Parent: parent}, &mapv1.CustomizeResponse{}}
	case hook.Tombstone:
		return Call{&mapv1.TombstoneRequest{
			Controller: controller, Parent: parent, MapKey: q.MapKey,
			Outputs: groups(q.Children, w), Related: related(q.Related, w),
		}, &mapv1.TombstoneResponse{}}
	case hook.Finalize:
		return Call{&mapv1.FinalizeRequest{
			Controller: controller, Parent: parent, MapKey: q.MapKey, Input: input(q, w),
			Outputs: groups(q.Children, w), Related: related(q.Related, w),
		}, &mapv1.FinalizeResponse{}}
	default:
		return Call{&mapv1.MapRequest{
			Controller: controller, Parent: parent, MapKey: q.MapKey, Input: input(q, w),
			Outputs: groups(q.Children, w), Related: related(q.Related, w),
		}, &mapv1.MapResponse{}}
	}
}

// input encodes the input of a question, if it has one.
func input(q *hook.Question, w writer) *hookv1.ObservedObject {
	if q.Input == nil {
		return nil
	}
	return w.object(q.Input)
}
