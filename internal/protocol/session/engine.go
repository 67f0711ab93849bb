package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
)

// EngineSettings say how the engine's side behaves.
type EngineSettings[O Observed] struct {
	// SessionID is the random name of the session.
	SessionID string
	// Build names the engine's build.
	Build string
	// Encode writes an object. The message is read at once, and not kept.
	Encode func(O) *hookv1.Object
	// MessageBytes bounds a message and StateBytes what is kept; 0 stands for the defaults of the
	// package.
	MessageBytes uint64
	StateBytes   int
	// Capabilities are the optional features of this side; nil means all that the package has.
	Capabilities []streamv1.Capability
	// Reserver is asked before the content of a message is built; nil refuses nothing.
	Reserver Reserver
}

// Reserver grants memory for messages that are being read, or returns an error at once.
type Reserver interface {
	TryAcquire(bytes int64) error
	Release(bytes int64)
}

// unlimited grants everything.
type unlimited struct{}

func (unlimited) TryAcquire(int64) error { return nil }
func (unlimited) Release(int64)          {}

// Question is one question about the objects in its slots.
type Question[O Observed] struct {
	// Subject is what the set is remembered under; empty: nothing is remembered.
	Subject string
	Method  string
	// Shell is the request without its objects.
	Envelope     proto.Message
	Slots        []Slot[O]
	TraceContext map[string]string
	// Remaining returns how long the answer may still take. It is called when the call begins,
	// which may be later than Ask; nil: no limit.
	Remaining func() time.Duration
}

// Outcome is what became of a question; exactly one of Response, Refused, Fault, Exhausted and Lost
// is set.
type Outcome struct {
	CallID uint64
	// Response is the whole response. Its desired objects are shared with later responses and not
	// changed by anyone.
	Response proto.Message
	// Refused is the hook's failure.
	Refused *statuspb.Status
	// Fault says that the question is larger than the hook accepts, or the answer wrong.
	Fault error
	// Exhausted is the Reserver's error: there is no memory for the answer now.
	Exhausted error
	// Reserved is what the response takes of the Reserver. Whoever takes the outcome must release
	// it.
	Reserved int64
	// Lost says that there was no answer before the stream ended, or that the question was not
	// asked because it ends.
	Lost bool
	// Sent and Got are the sizes of the call and of its answer in bytes; Snapshot says that the
	// whole set was sent.
	Sent, Got uint64
	Snapshot  bool
}

// News is what a message of the hook leads to.
type EngineReceived struct {
	// Welcome is set once the session is open.
	Welcome *streamv1.Welcome
	// Drain says that the hook wants no more questions: Ask elsewhere.
	Drain bool
	// Trigger asks for syncs.
	Trigger *streamv1.Trigger
}

// Counts say what an engine did.
type Counts struct {
	// Snapshots are calls with the whole set, Changes those with what changed.
	Snapshots, Changes uint64
	// Nacks are calls for which the hook lacked something; Mismatches are answers that refer to
	// what the engine does not hold. After each of them the question is asked again.
	Nacks, Mismatches uint64
	// Resumed are subjects that the hook still held after a reconnection; Dropped are those that it
	// did not.
	Resumed, Dropped uint64
}

// Engine is the engine's side of a session. It outlives streams: Connect begins each.
type Engine[O Observed] struct {
	settings   EngineSettings[O]
	peer       *peerState[O]
	counts     Counts
	lastCallID uint64
	waiting    []*call[O]
	outcomes   []Outcome
	stream[O]
}

// stream is what an Engine holds of one stream.
type stream[O Observed] struct {
	phase    phase
	last     uint64 // the id of the last call
	calls    map[uint64]*call[O]
	window   *streamv1.Window
	busy     uint64 // the sizes of calls under way
	accepts  uint64 // the largest message that the hook takes
	in       assembler
	out      []*streamv1.EngineMessage
	draining bool
	common   capabilities // from the Welcome on
}

type phase int

const (
	closed phase = iota
	greeting
	open
)

// asked is a question, and its call once it is made.
type call[O Observed] struct {
	callID    uint64
	question  Question[O]
	id        uint64
	about     *peerSubject[O] // nil: nothing is remembered
	before    *itemList       // the list that the call says is held
	size      uint64
	snapshot  bool
	again     bool // asked a second time, with everything
	cancelled bool
}

// NewEngine makes a session without a stream.
func NewEngine[O Observed](s EngineSettings[O]) *Engine[O] {
	s.MessageBytes = cmp.Or(s.MessageBytes, DefaultMessageBytes)
	if s.Capabilities == nil {
		s.Capabilities = allCapabilities
	}
	if s.Reserver == nil {
		s.Reserver = unlimited{}
	}
	return &Engine[O]{settings: s, peer: newPeerState(s.Encode, cmp.Or(s.StateBytes, DefaultStateBytes))}
}

// Bytes is about how much memory the session takes: what the hook is believed to hold, and the
// message that is incomplete.
func (e *Engine[O]) Bytes() int { return e.peer.bytes + cap(e.in.data) }

// Shrink forgets what was used longest ago until the session takes at most limit bytes, as far as
// it can. It reports whether the hook's incomplete message alone takes more: then the stream must
// end.
func (e *Engine[O]) Shrink(limit int) (tooLarge bool) {
	e.sendForget(e.peer.evictTo(limit - cap(e.in.data)))
	return cap(e.in.data) > limit
}

// Counts are the counts since the beginning.
func (e *Engine[O]) Counts() Counts { return e.counts }

// Connect begins a stream. What was asked on the one before must be lost (Disconnect).
func (e *Engine[O]) Connect() {
	e.stream = stream[O]{phase: greeting, calls: map[uint64]*call[O]{}, in: assembler{limit: e.settings.MessageBytes}}
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Hello{Hello: &streamv1.Hello{
		Versions: []uint32{
			Version,
		},
		SessionId: e.settings.SessionID,
		BuildId:   e.settings.Build, Capabilities: e.settings.Capabilities,
		MaxMessageBytes: e.settings.MessageBytes,
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
	e.waiting, e.stream = nil, stream[O]{}
}

func (e *Engine[O]) lose(a *call[O]) {
	e.end(a)
	e.finish(a, Outcome{Lost: true})
}

// Open says whether questions may be asked.
func (e *Engine[O]) Open() bool { return e.phase == open && !e.draining }

// Greeted says whether the hook has said Welcome on this stream.
func (e *Engine[O]) Welcomed() bool { return e.phase == open }

// Load is how many questions have no answer yet.
func (e *Engine[O]) Load() int { return len(e.calls) + len(e.waiting) }

// Ask puts a question, at once or when the window allows it, and returns the ticket that its
// Outcome carries.
func (e *Engine[O]) Ask(q Question[O]) uint64 {
	e.lastCallID++
	e.waiting = append(e.waiting, &call[O]{callID: e.lastCallID, question: q})
	e.pump()
	return e.lastCallID
}

// Cancel gives a question up: there will be no Outcome. It says whether a call was under way, so
// that its answer is still due.
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

// Due says whether the answer to a question is still to come, wanted or not.
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

// forgetNames is how many subjects one message names, so that it stays small beside the hook's
// limit.
const forgetNames = 1000

func (e *Engine[O]) sendForget(names []string) {
	if e.phase != open {
		return
	}
	for some := range slices.Chunk(names, forgetNames) {
		e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Forget{Forget: &streamv1.Forget{Subjects: some}}})
	}
}

// Drain says that nothing more is asked on this stream. Questions that wait for the window are
// lost.
func (e *Engine[O]) Drain() {
	if e.phase == open {
		e.drained()
		e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Drain{Drain: &streamv1.Drain{}}})
	}
}

// drained gives up what is not asked yet.
func (e *Engine[O]) drained() {
	e.draining = true
	for _, a := range e.waiting {
		e.lose(a)
	}
	e.waiting = nil
}

// Drained says that a side wants no more questions, and that all have their answers.
func (e *Engine[O]) Drained() bool { return e.draining && len(e.calls) == 0 }

// AnswerTrigger sends the result of a trigger.
func (e *Engine[O]) AnswerTrigger(t *streamv1.TriggerResult) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_TriggerResult{TriggerResult: t}})
}

// GoAway tells the hook why the engine ends the stream. The caller ends it once the message is sent.
func (e *Engine[O]) GoAway(s *statuspb.Status) {
	e.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_GoAway{GoAway: &streamv1.GoAway{Status: s}}})
}

// Outbox takes the messages to send, in order.
func (e *Engine[O]) Outbox() []*streamv1.EngineMessage {
	out := e.out
	e.out = nil
	return out
}

// Unsent is how many messages Outbox would take.
func (e *Engine[O]) Unsent() int { return len(e.out) }

// Outcomes takes what became of questions.
func (e *Engine[O]) Outcomes() []Outcome {
	out := e.outcomes
	e.outcomes = nil
	return out
}

// pump begins the calls that the window allows.
func (e *Engine[O]) pump() {
	for len(e.waiting) > 0 && e.Open() && e.free() {
		next := e.waiting[0]
		e.waiting[0] = nil
		e.waiting = e.waiting[1:]
		e.begin(next)
	}
}

func (e *Engine[O]) free() bool {
	return uint64(len(e.calls)) < uint64(e.window.GetCalls()) && e.busy < e.window.GetBytes()
}

// begin makes a call.
func (e *Engine[O]) begin(a *call[O]) {
	q := &a.question
	if !e.common.has(changes) {
		q.Subject = "" // the hook keeps no state
	}
	base := e.peer.subjects[q.Subject]
	c := e.peer.compute(base, q.Slots, naming{known: !a.again, hashes: e.common.has(objectHashes)})
	envelope, err := proto.Marshal(q.Envelope)
	if err = cmp.Or(c.err, err); err != nil {
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
	if a.snapshot = base == nil; base != nil {
		call.Base = base.digest.wire()
		if a.before = base.list; a.before != nil {
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

// put sends a call and notes what the hook holds then.
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

// end takes a call off the books.
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

// finish tells what became of a question, unless nobody wants to know.
func (e *Engine[O]) finish(a *call[O], o Outcome) {
	if a.cancelled {
		e.settings.Reserver.Release(o.Reserved)
		return
	}
	o.CallID, o.Sent, o.Snapshot = a.callID, a.size, a.snapshot
	e.outcomes = append(e.outcomes, o)
}

// send queues a message, in fragments if it is large and the hook reassembles them.
func (e *Engine[O]) send(m *streamv1.EngineMessage) {
	if !e.common.has(fragments) {
		e.out = append(e.out, m)
		return
	}
	e.out = append(e.out, fragmented(m, func(f *streamv1.Fragment) *streamv1.EngineMessage {
		return &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Fragment{Fragment: f}}
	})...)
}
