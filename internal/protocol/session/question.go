package session

import (
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// Question is one question about the objects in its slots.
type Question[O Observed] struct {
	// Subject is the key of the state; empty: neither side keeps state.
	Subject string
	Method  string
	// Envelope is the request without its objects.
	Envelope     proto.Message
	Slots        []Slot[O]
	TraceContext map[string]string
	// Remaining returns the time left for the answer. The engine calls it when the call starts,
	// which may be later than Ask; nil: no limit.
	Remaining func() time.Duration
}

// Outcome is the result of a question. Exactly one of Response, Refused, Fault, Exhausted and Lost
// is set.
type Outcome struct {
	CallID uint64
	// Response is the whole response. Later responses share its desired objects, so it must not be
	// changed.
	Response proto.Message
	// Derived belongs to the desired objects of Response.
	Derived *Derived
	// Refused is the hook's error.
	Refused *statuspb.Status
	// Fault is set if the question exceeds the hook's limit, or the answer is invalid.
	Fault error
	// Exhausted is the Reserver's error: no memory for the answer.
	Exhausted error
	// Reserved is the memory that the Reserver granted for the response or the failure. The
	// receiver of the outcome must release it.
	Reserved int64
	// Lost reports that the stream ended before the answer, or before the call started.
	Lost bool
	// Sent and Got are the sizes of the call and its answer in bytes. Snapshot reports that the
	// call was a snapshot.
	Sent, Got uint64
	Snapshot  bool
}

// EngineReceived is the effect of a message of the hook.
type EngineReceived struct {
	// Welcome is set when the session opens.
	Welcome *streamv1.Welcome
	// Drain reports that the hook accepts no more calls.
	Drain bool
	// Trigger asks for syncs.
	Trigger *streamv1.Trigger
}
