package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// EngineConfig configures the engine's side.
type EngineConfig[O Observed] struct {
	// SessionID is the random name of the session.
	SessionID string
	// Build names the engine's build.
	Build string
	// Features are the features that the engine honours in responses.
	Features []string
	// Encode encodes an object. The engine does not keep the message.
	Encode func(O) *hookv1.ObservedObject
	// MessageBytes bounds a message, and StateBytes the peer state; 0 means the package's defaults.
	MessageBytes uint64
	StateBytes   int
	// Capabilities are the optional features of this side; nil means all.
	Capabilities []streamv1.Capability
	// Reserver grants the memory of decoded messages; nil is without limit.
	Reserver Reserver
}

// Reserver grants memory for decoded messages, or returns an error immediately.
type Reserver interface {
	TryAcquire(bytes int64) error
	Release(bytes int64)
}

// unlimited grants everything.
type unlimited struct{}

func (unlimited) TryAcquire(int64) error { return nil }
func (unlimited) Release(int64)          {}

// Counts are the counters of an engine.
type Counts struct {
	// Snapshots counts calls with the whole set, Changes calls with a difference.
	Snapshots, Changes uint64
	// Nacks counts calls for which the hook lacked state, Mismatches answers that refer to a list
	// that the engine lacks. After each of them the engine makes the call again.
	Nacks, Mismatches uint64
	// Resumed counts subjects that survived a reconnection, Dropped those that did not.
	Resumed, Dropped uint64
}

// Engine is the engine's side of a session. It outlives streams; Connect starts each.
type Engine[O Observed] struct {
	config     EngineConfig[O]
	peer       *peerState[O]
	counts     Counts
	lastCallID uint64
	waiting    []*call[O]
	outcomes   []Outcome
	stream[O]
}

// stream is the part of an Engine that belongs to one stream.
type stream[O Observed] struct {
	phase    phase
	last     uint64 // the ID of the last call
	calls    map[uint64]*call[O]
	window   *streamv1.Window
	busy     uint64 // the sizes of the open calls
	accepts  uint64 // the largest message that the hook accepts
	in       assembler
	out      []*streamv1.EngineMessage
	queued   backlog // of out
	sending  backlog // of the messages that Outbox has returned last
	draining bool
	leaving  bool         // GoAway is queued or sent, and nothing follows it
	common   capabilities // from the Welcome on
}

// backlog is the approximate memory of messages to the hook until they are sent.
type backlog struct {
	bytes int // of all messages
	calls int // of calls, a part of bytes
	// answers are the results of triggers, and answerBytes their sizes on the wire
	answers, answerBytes int
}

// add counts a message of a size on the wire.
func (b *backlog) add(m *streamv1.EngineMessage, size int) {
	bytes := size + messageBytes + len(m.GetForget().GetSubjects())*nameBytes
	b.bytes += bytes
	switch m.GetMessage().(type) {
	case *streamv1.EngineMessage_Call:
		b.calls += bytes
	case *streamv1.EngineMessage_TriggerResult:
		b.answers++
		b.answerBytes += size
	}
}

type phase int

const (
	closed phase = iota
	greeting
	open
)

// call is a question, and its call on the stream once it starts.
type call[O Observed] struct {
	callID    uint64
	question  Question[O]
	id        uint64
	about     *peerSubject[O] // nil: no state
	before    *itemList       // the list that the answer may refer to
	size      uint64
	snapshot  bool
	again     bool // the second attempt, with every object
	cancelled bool
}

// NewEngine returns a session without a stream.
func NewEngine[O Observed](s EngineConfig[O]) *Engine[O] {
	s.MessageBytes = cmp.Or(s.MessageBytes, DefaultMessageBytes)
	if s.Capabilities == nil {
		s.Capabilities = allCapabilities
	}
	if s.Reserver == nil {
		s.Reserver = unlimited{}
	}
	return &Engine[O]{config: s, peer: newPeerState(s.Encode, cmp.Or(s.StateBytes, DefaultStateBytes))}
}

// Bytes returns the approximate memory of the session: the peer state, an incomplete message, and
// the messages that the hook has not read.
func (e *Engine[O]) Bytes() int { return e.peer.bytes + e.streamBytes() }

// streamBytes is the part of Bytes that ends with the stream.
func (e *Engine[O]) streamBytes() int { return cap(e.in.data) + e.queued.bytes + e.sending.bytes }

// Shrink drops the least recently used subjects until the session takes at most limit bytes, if
// possible. It reports whether messages alone exceed the limit: the incomplete one, and those that
// the hook has not read, except for calls, which maxUnsent bounds. The caller must then end the
// stream.
func (e *Engine[O]) Shrink(limit int) (tooLarge bool) {
	e.sendForget(e.peer.evictTo(limit - e.streamBytes()))
	return e.streamBytes()-e.queued.calls-e.sending.calls > limit
}

// Counts returns the counters since the creation of the session.
func (e *Engine[O]) Counts() Counts { return e.counts }

// Connect starts a stream. The caller must have called Disconnect for the previous one.
func (e *Engine[O]) Connect() {
	e.stream = stream[O]{phase: greeting, calls: map[uint64]*call[O]{}, in: assembler{limit: e.config.MessageBytes}}
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{
		Versions:        []uint32{Version},
		SessionId:       e.config.SessionID,
		BuildId:         e.config.Build,
		Capabilities:    e.config.Capabilities,
		MaxMessageBytes: e.config.MessageBytes,
		Features:        e.config.Features,
	}}})
}

// Disconnect ends the stream. All open questions are lost. The state that the hook holds stays if
// both sides can resume the session.
func (e *Engine[O]) Disconnect() {
	for _, id := range slices.Sorted(maps.Keys(e.calls)) {
		e.lose(e.calls[id])
	}
	for _, a := range e.waiting {
		e.lose(a)
	}
	if e.phase == open && !e.common.has(resume) {
		e.peer.clear()
	}
	e.waiting = nil
	e.stream = stream[O]{}
}

func (e *Engine[O]) lose(a *call[O]) {
	e.end(a)
	e.finish(a, Outcome{Lost: true})
}

// Open reports whether Ask may be called.
func (e *Engine[O]) Open() bool { return e.phase == open && !e.draining && !e.leaving }

// Welcomed reports whether the hook has sent its Welcome on this stream.
func (e *Engine[O]) Welcomed() bool { return e.phase == open }

// Load returns the number of questions without an outcome.
func (e *Engine[O]) Load() int { return len(e.calls) + len(e.waiting) }

// Ask queues a question, starts its call when the window allows it, and returns the ID that its
// Outcome will carry.
func (e *Engine[O]) Ask(q Question[O]) uint64 {
	e.lastCallID++
	e.waiting = append(e.waiting, &call[O]{callID: e.lastCallID, question: q})
	e.pump()
	return e.lastCallID
}

// Cancel cancels a question, which then has no Outcome. It reports whether a call was open, so that
// the hook still owes an answer.
func (e *Engine[O]) Cancel(callID uint64) bool {
	e.waiting = slices.DeleteFunc(e.waiting, func(a *call[O]) bool { return a.callID == callID })
	for _, a := range e.calls {
		if a.callID == callID && !a.cancelled {
			a.cancelled = true
			e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Cancel{Cancel: &streamv1.Cancel{CallId: a.id}}})
			return true
		}
	}
	return false
}

// Due reports whether the hook owes the answer to a question, cancelled or not.
func (e *Engine[O]) Due(callID uint64) bool {
	for _, a := range e.calls {
		if a.callID == callID {
			return true
		}
	}
	return false
}

// Forget drops a subject on both sides.
func (e *Engine[O]) Forget(subject string) {
	if e.peer.subjects[subject] != nil {
		e.peer.forget(subject)
		e.sendForget([]string{subject})
	}
}

// ForgetAll drops the subjects with a prefix on both sides.
func (e *Engine[O]) ForgetAll(prefix string) {
	var names []string
	for name := range e.peer.subjects {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		e.peer.forget(name)
	}
	e.sendForget(names)
}

// forgetNames and forgetBytes bound the subjects of one Forget message, to keep it within the
// hook's limit. A longer name has a message of its own.
const (
	forgetNames = 1000
	forgetBytes = 64 << 10
)

func (e *Engine[O]) sendForget(names []string) {
	if e.phase != open {
		return
	}
	for len(names) > 0 {
		n := 0
		bytes := 0
		for n < min(len(names), forgetNames) && (n == 0 || bytes+len(names[n]) <= forgetBytes) {
			bytes += len(names[n])
			n++
		}
		e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Forget{
			Forget: &streamv1.Forget{Subjects: names[:n:n]},
		}})
		names = names[n:]
	}
}

// Drain stops new calls on this stream. Queued questions are lost.
func (e *Engine[O]) Drain() {
	if e.phase == open {
		e.drained()
		e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Drain{Drain: &streamv1.Drain{}}})
	}
}

// drained drops the queue.
func (e *Engine[O]) drained() {
	e.draining = true
	for _, a := range e.waiting {
		e.lose(a)
	}
	e.waiting = nil
}

// Drained reports whether a side drains the stream and all calls have their answers.
func (e *Engine[O]) Drained() bool { return e.draining && len(e.calls) == 0 }

// AnswerTrigger sends the result of a trigger.
func (e *Engine[O]) AnswerTrigger(t *streamv1.TriggerResult) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_TriggerResult{TriggerResult: t}})
}

// GoAway sends the reason why the engine ends the stream. It is the last message: the caller ends
// the stream once it is sent, and queued questions are lost then.
func (e *Engine[O]) GoAway(s *statuspb.Status) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_GoAway{GoAway: &streamv1.GoAway{Status: s}}})
	e.leaving = true
}

// Outbox returns the messages to send, in order, and removes them. They count as the session's
// until the next Outbox, which means that they are sent, and may start calls that waited for that.
func (e *Engine[O]) Outbox() []*streamv1.EngineMessage {
	e.sending = backlog{}
	e.pump()
	out := e.out
	e.out = nil
	e.sending = e.queued
	e.queued = backlog{}
	return out
}

// Unsent returns the number of messages to send.
func (e *Engine[O]) Unsent() int { return len(e.out) }

// UnreadAnswers returns the number of the trigger results that are not sent, and the sum of their
// sizes on the wire.
func (e *Engine[O]) UnreadAnswers() (n, bytes int) {
	return e.queued.answers + e.sending.answers, e.queued.answerBytes + e.sending.answerBytes
}

// Outcomes returns the new outcomes, and removes them.
func (e *Engine[O]) Outcomes() []Outcome {
	out := e.outcomes
	e.outcomes = nil
	return out
}

// pump starts the calls that the window allows.
func (e *Engine[O]) pump() {
	for len(e.waiting) > 0 && e.Open() && e.free() {
		next := e.waiting[0]
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.begin(next)
	}
}

// maxUnsent is the size of the unsent messages from which on no call starts: the window is the
// hook's own choice, and a hook that does not read would have all calls in it wait here.
const maxUnsent = 4 << 20

func (e *Engine[O]) free() bool {
	return uint64(len(e.calls)) < uint64(e.window.GetCalls()) && e.busy < e.window.GetBytes() &&
		e.queued.bytes+e.sending.bytes < maxUnsent
}

// begin starts a call.
func (e *Engine[O]) begin(a *call[O]) {
	q := &a.question
	if !e.common.has(changes) {
		q.Subject = "" // the hook keeps no state
	}
	base := e.peer.subjects[q.Subject]
	c := e.peer.compute(base, q.Slots, naming{known: !a.again, hashes: e.common.has(objectHashes)})
	envelope, err := proto.Marshal(q.Envelope)
	err = cmp.Or(c.err, err)
	if err != nil {
		e.finish(a, Outcome{Fault: fmt.Errorf("the question cannot be written: %w", err)})
		return
	}
	call := &streamv1.Call{
		Id: e.last + 1, Method: q.Method, TraceContext: q.TraceContext, Subject: q.Subject,
		Removed: c.removed, Upserts: c.upserts, Digest: c.digest.wire(), Envelope: envelope,
	}
	if q.Remaining != nil {
		call.Timeout = durationpb.New(max(time.Millisecond, q.Remaining()))
	}
	a.snapshot = base == nil
	if base != nil {
		call.Base = base.digest.wire()
		a.before = base.list
		if a.before != nil {
			call.DesiredDigest = a.before.digest.wire()
		}
	}
	a.size = sizeOf(call)
	message := &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Call{Call: call}}
	if whole := sizeOf(message); e.accepts > 0 && whole > e.accepts {
		e.finish(a, Outcome{Fault: fmt.Errorf("the question has %d bytes, the hook accepts at most %d", whole, e.accepts)})
		return
	}
	e.put(a, message, c)
}

// put sends a call and updates the peer state.
func (e *Engine[O]) put(a *call[O], call *streamv1.EngineMessage, c *change[O]) {
	if a.question.Subject != "" {
		a.about = e.peer.commit(a.question.Subject, c)
		a.about.calls++
	}
	if a.snapshot {
		e.counts.Snapshots++
	} else {
		e.counts.Changes++
	}
	e.last++
	a.id = e.last
	e.calls[a.id] = a
	e.busy += a.size
	e.send(call)
	e.sendForget(e.peer.evict())
}

// end closes a call.
func (e *Engine[O]) end(a *call[O]) {
	if a.id == 0 || e.calls[a.id] != a {
		return
	}
	delete(e.calls, a.id)
	e.busy -= a.size
	if a.about != nil {
		a.about.calls--
	}
}

// finish records the outcome of a question, unless it was cancelled.
func (e *Engine[O]) finish(a *call[O], o Outcome) {
	if a.cancelled {
		e.config.Reserver.Release(o.Reserved)
		return
	}
	o.CallID = a.callID
	o.Sent = a.size
	o.Snapshot = a.snapshot
	e.outcomes = append(e.outcomes, o)
}

// send queues a message, in fragments if it is large and the hook reassembles them.
func (e *Engine[O]) send(m *streamv1.EngineMessage) {
	if e.leaving {
		return
	}
	size := proto.Size(m)
	e.queued.add(m, size)
	if !e.common.has(fragments) {
		e.out = append(e.out, m)
		return
	}
	e.out = append(e.out, fragmented(m, size, func(f *streamv1.Fragment) *streamv1.EngineMessage {
		return &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Fragment{Fragment: f}}
	})...)
}

// messageBytes and nameBytes are about what a queued message, and a name in it, take beside their
// content.
const (
	messageBytes = 256
	nameBytes    = 16
)
