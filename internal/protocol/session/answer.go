package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/decode"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// Receive handles a message from the hook. Afterwards, Outcomes and Outbox return what it has
// caused. An error is a *ProtocolError, or comes from the Reserver; the caller must then end the
// stream.
func (e *Engine[O]) Receive(m *streamv1.HookMessage) (EngineReceived, error) {
	if f := m.GetFragment(); f != nil {
		data, err := e.in.add(f)
		if data == nil || err != nil {
			return EngineReceived{}, err
		}
		m = &streamv1.HookMessage{}
		release, err := e.build(data, m)
		if err != nil {
			return EngineReceived{}, err
		}
		defer release()
	} else if e.in.busy() {
		return EngineReceived{}, protocolError("got %T between fragments", m.GetMessage())
	}
	if e.phase != open {
		return e.greeted(m.GetWelcome())
	}
	switch message := m.GetMessage().(type) {
	case *streamv1.HookMessage_Welcome, *streamv1.HookMessage_Attach, *streamv1.HookMessage_Fragment:
		return EngineReceived{}, protocolError("got %T in an open session", message)
	case *streamv1.HookMessage_Answer:
		return EngineReceived{}, e.answer(message.Answer)
	case *streamv1.HookMessage_Window:
		e.window = message.Window
	case *streamv1.HookMessage_Forget:
		for _, name := range message.Forget.GetSubjects() {
			e.peer.forget(name)
		}
	case *streamv1.HookMessage_Drain:
		e.drained()
		return EngineReceived{Drain: true}, nil
	case *streamv1.HookMessage_Trigger:
		return EngineReceived{Trigger: message.Trigger}, nil
	}
	e.pump()
	return EngineReceived{}, nil
}

// memoryFactor limits the memory of a decoded message, as a multiple of its size on the wire.
const memoryFactor = 4

func (e *Engine[O]) limits() decode.Limits {
	return decode.Limits{Memory: memoryFactor * e.config.MessageBytes}
}

// build decodes a message from fragments, if the Reserver grants the memory.
func (e *Engine[O]) build(data []byte, m *streamv1.HookMessage) (release func(), err error) {
	size, err := decode.Estimate(data, m.ProtoReflect().Descriptor(), e.limits())
	if err != nil {
		return nil, protocolError("the fragments are no message: %v", err)
	}
	reserved := int64(size) //nolint:gosec // within the limits
	if err := e.config.Reserver.TryAcquire(reserved); err != nil {
		return nil, err
	}
	if err := decode.Unmarshal(data, m, e.limits()); err != nil {
		e.config.Reserver.Release(reserved)
		return nil, protocolError("the fragments are no message: %v", err)
	}
	return func() { e.config.Reserver.Release(reserved) }, nil
}

// greeted opens the session when the Welcome arrives.
func (e *Engine[O]) greeted(w *streamv1.Welcome) (EngineReceived, error) {
	switch {
	case e.phase == closed || w == nil:
		return EngineReceived{}, protocolError("the hook's first message is no Welcome")
	case w.GetVersion() != Version:
		return EngineReceived{}, protocolError("the hook chose version %d of the protocol, expected %d",
			w.GetVersion(), Version)
	}
	e.phase, e.window, e.accepts = open, w.GetWindow(), w.GetMaxMessageBytes()
	e.common = common(e.config.Capabilities, w.GetCapabilities())
	if e.common.has(resume) {
		e.resume(w.GetSubjects())
	} else {
		e.resume(nil)
	}
	e.pump()
	return EngineReceived{Welcome: w}, nil
}

// maxReturned limits how many names we send back to the hook as unknown, because they are queued
// until the hook reads them. The hook keeps the others without use until its own limit evicts them.
const maxReturned = 256 << 10

// resume compares the peer state with the subjects that the hook still holds. Both sides drop every
// subject that differs.
func (e *Engine[O]) resume(states []*streamv1.SubjectState) {
	held := make(map[string][]byte, len(states))
	var unknown []string
	returned := 0
	for _, h := range states {
		name := h.GetSubject()
		_, repeated := held[name]
		held[name] = h.GetDigest()
		if repeated || e.peer.subjects[name] != nil || returned+len(name)+nameBytes > maxReturned {
			continue
		}
		returned += len(name) + nameBytes
		unknown = append(unknown, name)
	}
	for name, s := range e.peer.subjects {
		if digest, found := held[name]; found && s.digest.is(digest) {
			e.counts.Resumed++
			continue
		} else if found {
			unknown = append(unknown, name)
		}
		e.counts.Dropped++
		e.peer.forget(name)
	}
	e.sendForget(unknown)
}

// answer handles the answer to a call.
func (e *Engine[O]) answer(answer *streamv1.Answer) error {
	id := answer.GetCallId()
	a := e.calls[id]
	switch {
	case a == nil && id > e.last:
		return protocolError("got an answer to call %d, which was never made", id)
	case a == nil:
		return protocolError("got a second answer to call %d", id)
	case answer.GetOutcome() == nil:
		return protocolError("the answer to call %d has no outcome", id)
	}
	e.end(a)
	switch outcome := answer.GetOutcome().(type) {
	case *streamv1.Answer_Desired:
		e.desired(a, outcome.Desired, sizeOf(answer))
	case *streamv1.Answer_Error:
		e.refused(a, outcome.Error, sizeOf(answer))
	case *streamv1.Answer_Nack:
		e.counts.Nacks++
		e.repeat(a, fmt.Errorf("the hook still misses what the question refers to: %q",
			excerpt(outcome.Nack.GetStatus().GetMessage())))
	}
	e.pump()
	return nil
}

// refused finishes a call to which the hook replied with an error.
func (e *Engine[O]) refused(a *call[O], s *statuspb.Status, size uint64) {
	if s.GetCode() == int32(code.Code_OK) {
		e.finish(
			a,
			Outcome{
				Fault: fmt.Errorf(
					"the answer is an error with code 0 (OK), expected another code; its message is %q",
					excerpt(s.GetMessage()),
				),
				Got: size,
			},
		)
		return
	}
	memory := statusMemory(s)
	if err := e.config.Reserver.TryAcquire(memory); err != nil {
		e.finish(a, Outcome{Exhausted: err, Got: size})
		return
	}
	e.finish(a, Outcome{Refused: s, Got: size, Reserved: memory})
}

// statusMemory estimates the memory for a status while gRPC's type copies it twice.
func statusMemory(s *statuspb.Status) int64 {
	const copies, detailBytes = 3, 160 // a detail's message without its content
	return copies * int64(proto.Size(s)+detailBytes*len(s.GetDetails()))
}

// maxExcerptBytes limits how much of a hook's message an error quotes.
const maxExcerptBytes = 256

// excerpt returns the beginning of a hook's message. Unprintable characters become spaces.
func excerpt(text string) string {
	var out strings.Builder
	for _, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			r = ' '
		}
		if out.Len()+utf8.RuneLen(r) > maxExcerptBytes {
			return out.String() + "…"
		}
		out.WriteRune(r)
	}
	return out.String()
}

// desired assembles the response to a call and finishes the call.
func (e *Engine[O]) desired(a *call[O], d *streamv1.Desired, size uint64) {
	m := findMethod(a.question.Method)
	response := m.NewResponse()
	memory, err := e.estimate(response, d)
	if err != nil {
		e.finish(a, Outcome{Fault: err, Got: size})
		return
	}
	if err := e.config.Reserver.TryAcquire(memory); err != nil {
		e.finish(a, Outcome{Exhausted: err, Got: size})
		return
	}
	list, err := patch(a.before, d, e.config.MessageBytes)
	if err != nil {
		e.config.Reserver.Release(memory)
	}
	if errors.Is(err, errLarge) { // repeating the call would not help
		e.finish(a, Outcome{Fault: err, Got: size})
		return
	}
	if err != nil {
		e.counts.Mismatches++
		e.repeat(a, err)
		return
	}
	if err := m.assemble(response, d.GetEnvelope(), list); err != nil {
		e.config.Reserver.Release(memory)
		e.finish(a, Outcome{Fault: err, Got: size})
		return
	}
	if a.about != nil {
		e.peer.answered(a.about, list)
		e.sendForget(e.peer.evict())
	}
	e.finish(a, Outcome{Response: response, Derived: &list.derived, Got: size, Reserved: memory})
}

// estimate returns about how much memory the new parts of an answer will take. It ignores malformed
// parts, which decoding will report.
func (e *Engine[O]) estimate(response proto.Message, d *streamv1.Desired) (int64, error) {
	var kept uint64 // items in runs; patch rejects invalid runs
	all, err := e.sizeOf(d.GetEnvelope(), response)
	if err != nil {
		return 0, err
	}
	for n, piece := range d.GetPieces() {
		insert, ok := piece.GetContent().(*streamv1.Piece_Insert)
		if !ok {
			kept += itemBytes * uint64(piece.GetKeep().GetCount())
			continue
		}
		size, err := e.sizeOf(insert.Insert, &hookv1.DesiredObject{})
		if err != nil {
			return 0, fmt.Errorf("pieces[%d]: %w", n, err)
		}
		all += size + itemBytes
		if all > e.limits().Memory {
			return 0, fmt.Errorf("the answer takes more than %d bytes of memory", e.limits().Memory)
		}
	}
	return int64(all + min(kept, e.config.MessageBytes)), nil //nolint:gosec // within the limits
}

// sizeOf estimates the memory of a message. An error is a *decode.LimitError.
func (e *Engine[O]) sizeOf(data []byte, m proto.Message) (uint64, error) {
	size, err := decode.Estimate(data, m.ProtoReflect().Descriptor(), e.limits())
	var limit *decode.LimitError
	if errors.As(err, &limit) {
		return 0, err
	}
	return max(size, uint64(len(data))), nil
}

// assemble decodes a response from its envelope and adds the desired objects.
func (m method) assemble(response proto.Message, envelope []byte, list *itemList) error {
	if err := proto.Unmarshal(envelope, response); err != nil {
		return fmt.Errorf("the response is no %s: %w", response.ProtoReflect().Descriptor().FullName(), err)
	}
	return m.put(response, list.messages)
}

// repeat makes a call again as a snapshot that contains every object. If this fails too, the
// outcome is a Fault.
func (e *Engine[O]) repeat(a *call[O], why error) {
	e.Forget(a.question.Subject)
	switch {
	case a.cancelled:
	case a.again:
		e.finish(a, Outcome{Fault: why})
	case e.draining:
		e.finish(a, Outcome{Lost: true})
	default:
		next := &call[O]{callID: a.callID, question: a.question, again: true}
		e.waiting = append([]*call[O]{next}, e.waiting...)
	}
}
