// Package codec writes questions in the messages of package hookloop.hook.v1 of proto, and reads
// answers and failures from them: what every transport of the gRPC contract does in the same way,
// whichever way its messages travel.
//
// It reaches no hook. Messages share the bytes of the objects that they are made of, and are only
// read. Responses come from outside and are checked for what the messages allow and the port does
// not; what an answer means is package plan's. Functions are safe for concurrent use. Tests of the
// transports cover it, with transporttest's suite.
package codec

import (
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// MaxMessageBytes bounds an answer, and a question that is not sent in parts.
const MaxMessageBytes = 16 << 20

// Call is one call of the contract. Response is empty, and of the method's type.
type Call struct {
	Request, Response proto.Message
}

// New writes a question.
func New(q *hook.Question) Call { return write(q, whole{}) }

// NewShell writes a question without its objects: groups are there, and empty. They travel in
// another way.
func NewShell(q *hook.Question) proto.Message { return write(q, shell{}).Request }

// contract is the protobuf package of the hooks' services.
const contract = "hookloop.hook.v1"

// Method returns the full name of the method for an operation of a kind of controller:
// "/hookloop.hook.v1.CompositeHookService/Sync".
func Method(k hook.ControllerKind, op hook.Op) string {
	return "/" + contract + "." + k.Descriptor().Service + "/" + strings.ToUpper(string(op[:1])) + string(op[1:])
}

func write(q *hook.Question, w writer) Call {
	if q.Kind.Descriptor().PatchesMetadata {
		return writeDecorator(q, w)
	}
	return writeComposite(q, w)
}

func writeComposite(q *hook.Question, w writer) Call {
	controller, parent := w.object(q.Controller), w.object(q.Parent)
	switch q.Op {
	case hook.Customize:
		return Call{
			&hookv1.CompositeHookServiceCustomizeRequest{Controller: controller, Parent: parent},
			&hookv1.CompositeHookServiceCustomizeResponse{},
		}
	case hook.Finalize:
		return Call{&hookv1.CompositeHookServiceFinalizeRequest{
			Controller: controller, Parent: parent, Children: groups(q.Children, w), Related: related(q.Related, w),
		}, &hookv1.CompositeHookServiceFinalizeResponse{}}
	default:
		return Call{&hookv1.CompositeHookServiceSyncRequest{
			Controller: controller, Parent: parent, Children: groups(q.Children, w), Related: related(q.Related, w),
		}, &hookv1.CompositeHookServiceSyncResponse{}}
	}
}

func writeDecorator(q *hook.Question, w writer) Call {
	controller, parent := w.object(q.Controller), w.object(q.Parent)
	switch q.Op {
	case hook.Customize:
		return Call{
			&hookv1.DecoratorHookServiceCustomizeRequest{Controller: controller, Object: parent},
			&hookv1.DecoratorHookServiceCustomizeResponse{},
		}
	case hook.Finalize:
		return Call{&hookv1.DecoratorHookServiceFinalizeRequest{
			Controller: controller, Object: parent, Attachments: groups(q.Children, w), Related: related(q.Related, w),
		}, &hookv1.DecoratorHookServiceFinalizeResponse{}}
	default:
		return Call{&hookv1.DecoratorHookServiceSyncRequest{
			Controller: controller, Object: parent, Attachments: groups(q.Children, w), Related: related(q.Related, w),
		}, &hookv1.DecoratorHookServiceSyncResponse{}}
	}
}
