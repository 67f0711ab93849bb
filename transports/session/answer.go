package session

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/protobuf/proto"
)

// Receive takes a message of the hook. Outcomes and Outbox have what it leads to. An error is a *ProtocolError; the stream is of no more
// use then.
func (e *Engine[O]) Receive(m *streamv1.HookMessage) (News, error) {
	if f := m.GetFragment(); f != nil {
		data, err := e.in.add(f)
		if data == nil || err != nil {
			return News{}, err
		}
		m = &streamv1.HookMessage{}
		if err := proto.Unmarshal(data, m); err != nil {
			return News{}, broken("the fragments are no message: %v", err)
		}
	} else if e.in.busy() {
		return News{}, broken("got %T between fragments", m.GetMessage())
	}
	if e.phase != open {
		return e.greeted(m.GetWelcome())
	}
	switch said := m.GetMessage().(type) {
	case *streamv1.HookMessage_Welcome, *streamv1.HookMessage_Attach, *streamv1.HookMessage_Fragment:
		return News{}, broken("got %T in an open session", said)
	case *streamv1.HookMessage_Answer:
		return News{}, e.answer(said.Answer)
	case *streamv1.HookMessage_Window:
		e.window = said.Window
	case *streamv1.HookMessage_Forget:
		for _, name := range said.Forget.GetSubjects() {
			e.beliefs.forget(name)
		}
	case *streamv1.HookMessage_Drain:
		e.drained()
		return News{Drain: true}, nil
	case *streamv1.HookMessage_Trigger:
		return News{Trigger: said.Trigger}, nil
	}
	e.pump()
	return News{}, nil
}

// greeted opens the session.
func (e *Engine[O]) greeted(w *streamv1.Welcome) (News, error) {
	switch {
	case e.phase == closed || w == nil:
		return News{}, broken("the hook's first message is no Welcome")
	case w.GetVersion() != Version:
		return News{}, broken("the hook chose version %d of the protocol, expected %d", w.GetVersion(), Version)
	}
	e.phase, e.window, e.accepts = open, w.GetWindow(), w.GetMaxMessageBytes()
	e.resume(w.GetHoldings())
	e.pump()
	return News{Welcome: w}, nil
}

// resume compares what is believed with what the hook says it holds. What differs is dropped on both sides.
func (e *Engine[O]) resume(holdings []*streamv1.Holding) {
	held := make(map[string][]byte, len(holdings))
	var unknown []string
	for _, h := range holdings {
		held[h.GetSubject()] = h.GetDigest()
		if e.beliefs.subjects[h.GetSubject()] == nil {
			unknown = append(unknown, h.GetSubject())
		}
	}
	for name, s := range e.beliefs.subjects {
		if digest, found := held[name]; found && s.digest.is(digest) {
			e.counts.Resumed++
			continue
		} else if found {
			unknown = append(unknown, name)
		}
		e.counts.Dropped++
		e.beliefs.forget(name)
	}
	e.forgotten(unknown)
}

// answer takes the answer to one call.
func (e *Engine[O]) answer(answer *streamv1.Answer) error {
	id := answer.GetCallId()
	a := e.calls[id]
	switch {
	case a == nil && id > e.last:
		return broken("got an answer to call %d, which was never made", id)
	case a == nil:
		return broken("got a second answer to call %d", id)
	case answer.GetOutcome() == nil:
		return broken("the answer to call %d has no outcome", id)
	}
	e.end(a)
	switch said := answer.GetOutcome().(type) {
	case *streamv1.Answer_Desired:
		e.desired(a, said.Desired, sizeOf(answer))
	case *streamv1.Answer_Error:
		e.refused(a, said.Error, sizeOf(answer))
	case *streamv1.Answer_Nack:
		e.counts.Nacks++
		e.repeat(a, fmt.Errorf("the hook still misses what the question refers to: %q", words(said.Nack.GetMessage())))
	}
	e.pump()
	return nil
}

// refused passes the hook's failure on, if it is one.
func (e *Engine[O]) refused(a *asked[O], s *streamv1.Status, size uint64) {
	if s.GetCode() == int32(code.Code_OK) {
		e.finish(a, Outcome{Fault: fmt.Errorf("the answer is an error with code 0 (OK), expected another code; its message is %q", words(s.GetMessage())), Got: size})
		return
	}
	e.finish(a, Outcome{Refused: s, Got: size})
}

// maxWords is how many bytes of a hook's own words an error repeats.
const maxWords = 256

// words are the beginning of a hook's own words, as far as they can be printed.
func words(text string) string {
	var out strings.Builder
	for _, r := range text {
		if !strconv.IsPrint(r) || r == utf8.RuneError {
			r = ' '
		}
		if out.Len()+utf8.RuneLen(r) > maxWords {
			return out.String() + "…"
		}
		out.WriteRune(r)
	}
	return out.String()
}

// desired puts the response together.
func (e *Engine[O]) desired(a *asked[O], d *streamv1.Desired, size uint64) {
	list, err := patch(a.before, d, e.settings.MessageBytes)
	if errors.Is(err, errLarge) { // asking again does not make it smaller
		e.finish(a, Outcome{Fault: err, Got: size})
		return
	}
	if err != nil {
		e.counts.Mismatches++
		e.repeat(a, err)
		return
	}
	m := methods[a.question.Method]
	response := m.response()
	if err := proto.Unmarshal(d.GetResponse(), response); err != nil {
		e.finish(a, Outcome{Fault: fmt.Errorf("the response is no %s: %w", response.ProtoReflect().Descriptor().FullName(), err), Got: size})
		return
	}
	if err := m.put(response, list.messages()); err != nil {
		e.finish(a, Outcome{Fault: err, Got: size})
		return
	}
	if a.about != nil {
		e.beliefs.answered(a.about, list)
		e.forgotten(e.beliefs.evict())
	}
	e.finish(a, Outcome{Response: response, Got: size})
}

// repeat asks once more, with everything. The second time it is the answer's fault.
func (e *Engine[O]) repeat(a *asked[O], why error) {
	e.Forget(a.question.Subject)
	switch {
	case a.cancelled:
	case a.again:
		e.finish(a, Outcome{Fault: why})
	case e.draining:
		e.finish(a, Outcome{Lost: true})
	default:
		next := &asked[O]{ticket: a.ticket, question: a.question, again: true}
		e.waiting = append([]*asked[O]{next}, e.waiting...)
	}
}
