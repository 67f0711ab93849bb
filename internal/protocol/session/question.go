package session

import (
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// Question asks about the objects in its slots.
type Question[O Observed] struct {
	// Subject is the key under which both sides keep state. If it is empty, neither side does.
	Subject string
	Method  string
	// Envelope is the request without objects.
	Envelope     proto.Message
	Slots        []Slot[O]
	TraceContext map[string]string
	// Remaining returns how much time is left for the answer. It is called when the call starts,
	// which may be later than Ask. If it is nil, the time is not limited.
	Remaining func() time.Duration
}

// Outcome is the result of a question. Exactly one of Response, Refused, Fault, Exhausted and Lost
// is set.
type Outcome struct {
	CallID uint64
	// Response is the whole response. It must not be modified, because later responses share its
	// desired objects.
	Response proto.Message
	// Derived belongs to the desired objects in Response.
	Derived *Derived
	// Refused is set if the hook returned an error.
	Refused *statuspb.Status
	// Fault is set if the question exceeds the hook's limit, or the answer is invalid.
	Fault error
	// Exhausted is set if the Reserver granted no memory for the answer.
	Exhausted error
	// Reserved is how much memory the Reserver granted for the response or the failure. Whoever
	// receives the outcome must release it.
	Reserved int64
	// Lost is set if the stream ended before the answer, or before the call started.
	Lost bool
	// Sent and Got are the sizes of the call and its answer in bytes. Snapshot is set if the call
	// was a snapshot.
	Sent, Got uint64
	Snapshot  bool
}

// EngineReceived is what a message from the hook has caused.
type EngineReceived struct {
	// Welcome is set when the session opens.
	Welcome *streamv1.Welcome
	// Drain is set when the hook accepts no more calls.
	Drain bool
	// Trigger is set when the hook asks for syncs.
	Trigger *streamv1.Trigger
}
