// Package transporttest has the suite of tests that every transport should pass, so that a hook has
// the same meaning over each of them.
//
// Give [Run] a [Harness]: the transport's opener, and a function that serves a hook which behaves as
// the suite wants. The suite then asks real questions over real connections:
//
//	func TestTransport(t *testing.T) {
//		transporttest.Run(t, transporttest.Harness{
//			Open: tcp.Open,
//			Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
//				address := serve(t, behave) // until the test ends
//				return json.RawMessage(fmt.Sprintf(`{"address":%q,"timeout":%q}`, address, timeout))
//			},
//			Nowhere: func(t *testing.T) json.RawMessage {
//				return json.RawMessage(fmt.Sprintf(`{"address":%q}`, transporttest.ClosedAddress(t)))
//			},
//			Wrong:    map[string]json.RawMessage{"no address": json.RawMessage(`{}`)},
//			Reserves: true,
//		})
//	}
//
// If the transport carries the messages of the gRPC contract, let [Register] register the services
// of a hook with a [Behavior]. Cases run one after the other; each has a hook of its own.
package transporttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
)

// Harness is a transport under test.
type Harness struct {
	// Open is the transport's opener.
	Open hook.Opener
	// Serve starts a hook with the answers of behave, until the test ends, and returns the field of
	// the spec that opens it. timeout is a Go duration for that field; empty leaves it out.
	Serve func(t *testing.T, timeout string, behave Behavior) (field json.RawMessage)
	// Nowhere returns a field with a hook that does not run. It is nil if the transport has no such
	// field.
	Nowhere func(t *testing.T) (field json.RawMessage)
	// Wrong are fields that Open must refuse, by what is wrong with them.
	Wrong map[string]json.RawMessage
	// Reserves reports that the transport reserves the memory of answers by hook.Config.Reserve. It
	// should be true for each transport outside of Hookloop.
	Reserves bool
	// Lacks are the faults that a hook cannot have, or cannot report, over this transport.
	Lacks []Fault
}

// Behavior is a hook's side of a case. The context is that of the served call: it ends when the
// caller cancels.
type Behavior func(ctx context.Context, got Received) Reply

// Received is a question as the hook receives it.
type Received struct {
	// Kind is empty if the transport does not pass it on.
	Kind hook.ControllerKind
	Op   hook.Op
	// Parent is the JSON of the parent or the decorated object.
	Parent []byte
	// MapKey and Input are those of a map hook; Input is nil without one.
	MapKey string
	Input  []byte
	// Children are the JSON of children, attachments or outputs by kind (Deployment.apps/v1), then by
	// namespace/name.
	Children map[string]map[string]string
	// Related is like Children.
	Related map[string]map[string]string
	// TraceID is the trace id of the call, in hexadecimal; empty without a trace.
	TraceID string
}

// Reply is the hook's reply: an answer, or a fault.
type Reply struct {
	Answer *hook.Answer
	Fault  Fault
}

// Fault is a kind of failure.
type Fault string

// The faults.
const (
	// Fail: the hook returns FailText as its own error (status 500, INTERNAL).
	Fail Fault = "fail"
	// Throttle: the hook asks for a retry after RetryAfter.
	Throttle Fault = "throttle"
	// Reject: the hook rejects the parent, with the reason RejectReason.
	Reject Fault = "reject"
	// Garbage: the answer is malformed.
	Garbage Fault = "garbage"
	// Huge: the answer is larger than HugeBytes.
	Huge Fault = "huge"
	// Hang: the hook returns nothing before the call's context ends.
	Hang Fault = "hang"
)

// Record returns a question as a hook receives it that gets the question itself.
func Record(ctx context.Context, q *hook.Question) Received {
	got := Received{
		Kind: q.Kind, Op: q.Op, Parent: q.Parent.Raw(), MapKey: q.MapKey,
		Children: map[string]map[string]string{}, Related: map[string]map[string]string{}, TraceID: TraceID(ctx),
	}
	if q.Input != nil {
		got.Input = q.Input.Raw()
	}
	for _, g := range q.Children {
		got.Children[object.KindString(g.Resource.GVK)] = byName(g.Objects)
	}
	for _, g := range q.Related {
		got.Related[object.KindString(g.Resource.GVK)] = byName(g.Objects)
	}
	return got
}

func byName(objects []*object.Object) map[string]string {
	out := map[string]string{}
	for _, o := range objects {
		out[o.Ref().NamespacedName()] = string(o.Raw())
	}
	return out
}

// Run runs the suite. It sets OpenTelemetry's global propagator.
func Run(t *testing.T, h Harness) {
	otel.SetTextMapPropagator(propagation.TraceContext{})
	t.Run("the question arrives whole", h.questionArrives)
	t.Run("the trace's context arrives", h.traceArrives)
	t.Run("each operation's answer arrives", h.answersArrive)
	t.Run("each fault has its kind", h.faults)
	t.Run("a hook that does not run is unreachable", h.unreachable)
	t.Run("a hook that says nothing times out", h.timesOut)
	t.Run("the caller's cancellation ends the call", h.cancelled)
	t.Run("concurrent questions get their own answers", h.concurrent)
	t.Run("a wrong field is refused when the hook is opened", h.refusesFields)
	t.Run("the memory of an answer is counted", h.countsMemory)
	t.Run("a hook can be closed during a question", h.closes)
}
