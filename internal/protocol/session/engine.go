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

// EngineConfig configures an [Engine].
type EngineConfig[O Observed] struct {
	// SessionID should be random; it names the session.
	SessionID string
	// Build identifies the engine's build.
	Build string
	// Features lists the features that the engine honours in responses.
	Features []string
	// Encode encodes an object. The engine does not keep the returned message.
	Encode func(O) *hookv1.ObservedObject
	// MessageBytes limits a message, and StateBytes limits the peer state. If 0, the package's
	// defaults are used.
	MessageBytes uint64
	StateBytes   int
	// Capabilities lists the optional features to use. If it is nil, all are used.
	Capabilities []streamv1.Capability
	// Reserver grants memory for decoded messages. If it is nil, memory is not limited.
	Reserver Reserver
}

// Reserver grants memory for decoded messages. It must not wait: if there is no memory now, it
// returns an error.
type Reserver interface {
	TryAcquire(bytes int64) error
	Release(bytes int64)
}

// unlimited grants everything.
type unlimited struct{}

func (unlimited) TryAcquire(int64) error { return nil }
func (unlimited) Release(int64)          {}

// Counts holds what an engine has counted.
type Counts struct {
	// Snapshots counts calls that sent the whole set, and Changes counts calls that sent a
	// difference.
	Snapshots, Changes uint64
	// Nacks counts calls for which the hook lacked state. Mismatches counts answers that refer to a
	// list which the engine lacks. In both cases the engine repeats the call.
	Nacks, Mismatches uint64
	// Resumed counts subjects that survived when a stream was replaced, and Dropped counts the
	// others.
	Resumed, Dropped uint64
}

// Engine is the engine's side of a session. It is kept when a stream ends; call [Engine.Connect]
// for each new stream and [Engine.Disconnect] when it has ended. Call [Engine.Ask] to send a
// question.
type Engine[O Observed] struct {
	config     EngineConfig[O]
	peer       *peerState[O]
	counts     Counts
	lastCallID uint64
	waiting    []*call[O]
	outcomes   []Outcome
	stream[O]
}

// stream holds what belongs to the current stream.
type stream[O Observed] struct {
	phase    phase
	last     uint64 // ID of the last call
	calls    map[uint64]*call[O]
	window   *streamv1.Window
	busy     uint64 // total size of open calls
	accepts  uint64 // largest message that the hook accepts
	in       assembler
	out      []*streamv1.EngineMessage
	queued   backlog // of out
	sending  backlog // what Outbox has returned last
	draining bool
	leaving  bool         // GoAway is queued or sent; no other message may follow
	common   capabilities // set by the Welcome
}

// backlog estimates the memory of messages to the hook until they are sent.
type backlog struct {
	bytes int // all messages
	calls int // calls only; included in bytes
	// answers counts results of triggers, and answerBytes is their size on the wire
	answers, answerBytes int
}

// add counts a message that takes this many bytes on the wire.
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

// call is a question, and the call that asks it once it has started.
type call[O Observed] struct {
	callID    uint64
	question  Question[O]
	id        uint64
	about     *peerSubject[O] // nil if the question keeps no state
	before    *itemList       // list that the answer may refer to
	size      uint64
	snapshot  bool
	again     bool // this is the second attempt, with every object
	cancelled bool
}

// NewEngine returns a session that has no stream yet.
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

// Bytes returns about how much memory the session uses: for the peer state, for an incomplete
// message, and for messages that the hook has not read.
func (e *Engine[O]) Bytes() int { return e.peer.bytes + e.streamBytes() }

// streamBytes is the part of Bytes that is freed when the stream ends.
func (e *Engine[O]) streamBytes() int { return cap(e.in.data) + e.queued.bytes + e.sending.bytes }

// Shrink drops subjects, least recently used first, until the session uses at most limit bytes. It
// returns true if messages alone use more: the incomplete message and messages that the hook has
// not read, except calls, which maxUnsent limits. The caller must then end the stream.
func (e *Engine[O]) Shrink(limit int) (tooLarge bool) {
	e.sendForget(e.peer.evictTo(limit - e.streamBytes()))
	return e.streamBytes()-e.queued.calls-e.sending.calls > limit
}

// Counts returns what was counted since the session was created.
func (e *Engine[O]) Counts() Counts { return e.counts }

// Connect starts a stream. If there was a stream before, the caller must have called Disconnect.
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

// Disconnect ends the stream. All open questions are lost. If both sides can resume the session,
// the engine remembers what the hook holds.
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

// Load returns how many questions have no outcome yet.
func (e *Engine[O]) Load() int { return len(e.calls) + len(e.waiting) }

// Ask queues a question and starts the call when the window allows it. It returns the ID that the
// question's Outcome will carry.
func (e *Engine[O]) Ask(q Question[O]) uint64 {
	e.lastCallID++
	e.waiting = append(e.waiting, &call[O]{callID: e.lastCallID, question: q})
	e.pump()
	return e.lastCallID
}

// Cancel cancels a question; there will be no Outcome. It returns true if a call was open, which
// the hook must still answer.
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

// Due reports whether the hook must still answer a question, cancelled or not.
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

// forgetNames and forgetBytes limit the subjects in one Forget message, so that it fits the hook's
// limit. A longer name gets a message of its own.
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

// Drain starts no more calls on this stream. Queued questions are lost.
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

// Drained reports whether a side drains the stream and all calls are answered.
func (e *Engine[O]) Drained() bool { return e.draining && len(e.calls) == 0 }

// AnswerTrigger queues the result of a trigger.
func (e *Engine[O]) AnswerTrigger(t *streamv1.TriggerResult) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_TriggerResult{TriggerResult: t}})
}

// GoAway tells the hook why the engine ends the stream. No message may follow: once it is sent, the
// caller ends the stream, and queued questions are lost.
func (e *Engine[O]) GoAway(s *statuspb.Status) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_GoAway{GoAway: &streamv1.GoAway{Status: s}}})
	e.leaving = true
}

// Outbox returns messages to send, in order, and removes them. Call it again when they are sent:
// until then they count as the session's memory, and calls may wait for them.
func (e *Engine[O]) Outbox() []*streamv1.EngineMessage {
	e.sending = backlog{}
	e.pump()
	out := e.out
	e.out = nil
	e.sending = e.queued
	e.queued = backlog{}
	return out
}

// Unsent returns how many messages wait to be sent.
func (e *Engine[O]) Unsent() int { return len(e.out) }

// UnreadAnswers returns how many trigger results are not sent yet, and their size on the wire.
func (e *Engine[O]) UnreadAnswers() (n, bytes int) {
	return e.queued.answers + e.sending.answers, e.queued.answerBytes + e.sending.answerBytes
}

// Outcomes returns new outcomes and removes them.
func (e *Engine[O]) Outcomes() []Outcome {
	out := e.outcomes
	e.outcomes = nil
	return out
}

// pump starts as many calls as the window allows.
func (e *Engine[O]) pump() {
	for len(e.waiting) > 0 && e.Open() && e.free() {
		next := e.waiting[0]
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.begin(next)
	}
}

// maxUnsent limits unsent messages: at this size no call starts. The hook chooses the window, and a
// hook that does not read could otherwise make all calls in it wait here.
const maxUnsent = 4 << 20

func (e *Engine[O]) free() bool {
	return uint64(len(e.calls)) < uint64(e.window.GetCalls()) && e.busy < e.window.GetBytes() &&
		e.queued.bytes+e.sending.bytes < maxUnsent
}

// begin starts a call.
func (e *Engine[O]) begin(a *call[O]) {
	q := &a.question
	if !e.common.has(changes) {
		q.Subject = "" // the hook need not keep state
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

// end removes a call from the open ones.
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

// finish adds the outcome of a question, unless the question was cancelled.
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

// send queues a message. A large one is cut into fragments if the hook can reassemble them.
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

// messageBytes and nameBytes are about what a queued message, and a name in it, take in addition to
// their content.
const (
	messageBytes = 256
	nameBytes    = 16
)
