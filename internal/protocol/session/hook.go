package session

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// HookConfig configures a [Hook].
type HookConfig struct {
	// Build identifies the hook's build. After it changes, the engine syncs all parents again.
	Build string
	// Methods lists the full names of the methods that the hook implements.
	Methods []string
	// Calls and CallBytes limit the open calls. If 0, DefaultCalls and DefaultCallBytes are used.
	Calls     uint32
	CallBytes uint64
	// MessageBytes limits a message. If 0, DefaultMessageBytes is used.
	MessageBytes uint64
	// Capabilities lists the optional features to use. If it is nil, all are used.
	Capabilities []streamv1.Capability
	// State returns the state for a session ID. It is called once, when the Hello arrives.
	State func(sessionID string) *State
}

// Default limits for open calls.
const (
	DefaultCalls     = 64
	DefaultCallBytes = 64 << 20
)

// Hook is the hook's side of one stream. Make a new one with [NewHook] for each stream; the [State]
// of a session is handed on.
type Hook struct {
	config   HookConfig
	state    *State // nil until the Hello
	accepts  uint64 // largest message that the engine accepts; 0 means no limit
	last     uint64 // ID of the last call
	work     map[uint64]*Work
	in       assembler
	out      []*streamv1.HookMessage
	draining bool
	common   capabilities // set by the Hello
	hello    *streamv1.Hello
}

// Work is a question for a hook's function. Request must not be modified, because other questions
// share parts of it.
type Work struct {
	ID           uint64
	Method       string
	Request      proto.Message
	Timeout      time.Duration // 0 means no limit
	TraceContext map[string]string
	// Cache is what the driver set in the last answered work about the same subject, or nil.
	// CacheBytes is about how much memory it takes, and counts towards the state's limit.
	Cache      any
	CacheBytes int

	method method
	about  *subjectState // nil if the question keeps no state
	holds  []byte
}

// HookReceived is what a message from the engine has caused. At most one field is set.
type HookReceived struct {
	// Session is the session's ID. It is set by the Hello.
	Session string
	// Work is a question. The caller must call Answer or Refuse for it.
	Work *Work
	// Cancelled is work that the engine cancelled. The caller must still answer it.
	Cancelled *Work
	// Drain is set if the engine makes no more calls. The stream may end after the last answer.
	Drain bool
	// TriggerResult is the result of a trigger.
	TriggerResult *streamv1.TriggerResult
	// GoAway says why the engine is about to end the stream.
	GoAway *statuspb.Status
}

// NewHook starts a stream.
func NewHook(s HookConfig) *Hook {
	s.Calls, s.CallBytes = cmp.Or(s.Calls, DefaultCalls), cmp.Or(s.CallBytes, DefaultCallBytes)
	s.MessageBytes = cmp.Or(s.MessageBytes, DefaultMessageBytes)
	if s.Capabilities == nil {
		s.Capabilities = allCapabilities
	}
	return &Hook{config: s, work: map[uint64]*Work{}, in: assembler{limit: s.MessageBytes}}
}

// Receive handles a message from the engine. An error is a *ProtocolError or a *VersionError; the
// caller must then end the stream.
func (h *Hook) Receive(m *streamv1.EngineMessage) (HookReceived, error) {
	if f := m.GetFragment(); f != nil {
		data, err := h.in.add(f)
		if data == nil || err != nil {
			return HookReceived{}, err
		}
		m = &streamv1.EngineMessage{}
		if err := proto.Unmarshal(data, m); err != nil {
			return HookReceived{}, protocolError("the fragments are no message: %v", err)
		}
	} else if h.in.busy() {
		return HookReceived{}, protocolError("got %T between fragments", m.GetMessage())
	}
	if hello := m.GetHello(); hello != nil || h.state == nil {
		return h.open(hello)
	}
	switch message := m.GetMessage().(type) {
	case *streamv1.EngineMessage_Call:
		return h.call(message.Call)
	case *streamv1.EngineMessage_Cancel:
		return HookReceived{Cancelled: h.work[message.Cancel.GetCallId()]}, nil
	case *streamv1.EngineMessage_Forget:
		for _, name := range message.Forget.GetSubjects() {
			h.state.forget(name)
		}
	case *streamv1.EngineMessage_Drain:
		return HookReceived{Drain: true}, nil
	case *streamv1.EngineMessage_TriggerResult:
		return HookReceived{TriggerResult: message.TriggerResult}, nil
	case *streamv1.EngineMessage_GoAway:
		return HookReceived{GoAway: cmp.Or(message.GoAway.GetStatus(), &statuspb.Status{})}, nil
	case *streamv1.EngineMessage_Fragment:
		return HookReceived{}, protocolError("got a fragment within fragments")
	}
	return HookReceived{}, nil
}

// open answers the Hello.
func (h *Hook) open(hello *streamv1.Hello) (HookReceived, error) {
	switch {
	case hello == nil:
		return HookReceived{}, protocolError("the stream begins without a Hello")
	case h.state != nil:
		return HookReceived{}, protocolError("got a second Hello")
	case !slices.Contains(hello.GetVersions(), Version):
		return HookReceived{}, &VersionError{Engine: hello.GetVersions()}
	}
	h.state = h.config.State(hello.GetSessionId())
	h.hello = hello
	h.common = common(h.config.Capabilities, hello.GetCapabilities())
	h.accepts = h.largest(hello.GetMaxMessageBytes())
	if !h.common.has(resume) {
		h.state.clear()
	}
	welcome := &streamv1.Welcome{
		Version:         Version,
		BuildId:         h.config.Build,
		MaxMessageBytes: h.config.MessageBytes,
		Capabilities:    h.config.Capabilities,
		Methods:         h.config.Methods,
		Window:          &streamv1.Window{Calls: h.config.Calls, Bytes: h.config.CallBytes},
	}
	welcome.Subjects = h.state.subjectStates(welcome, h.accepts)
	h.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Welcome{Welcome: welcome}})
	return HookReceived{Session: hello.GetSessionId()}, nil
}

// largest returns the size of the largest message that can be sent. Without fragments, this is one
// piece.
func (h *Hook) largest(accepted uint64) uint64 {
	switch {
	case h.common.has(fragments):
		return accepted
	case accepted == 0:
		return fragmentBytes
	}
	return min(accepted, fragmentBytes)
}

// call assembles the question. If the state lacks something, it answers with a Nack.
func (h *Hook) call(c *streamv1.Call) (HookReceived, error) {
	if c.GetId() <= h.last {
		return HookReceived{}, nil
	}
	h.last = c.GetId()
	m := findMethod(c.GetMethod())
	if m.Method == nil {
		h.refuse(
			c.GetId(),
			&statuspb.Status{
				Code:    int32(code.Code_UNIMPLEMENTED),
				Message: "this hook does not know the method " + c.GetMethod(),
			},
		)
		return HookReceived{}, nil
	}
	set, missing, err := h.state.apply(h.state.setOf(c.GetSubject()), c)
	switch {
	case err != nil:
		return HookReceived{}, err
	case missing != nil:
		h.state.forget(c.GetSubject())
		h.answer(&streamv1.Answer{CallId: c.GetId(), Outcome: &streamv1.Answer_Nack{Nack: missing}})
		return HookReceived{}, nil
	}
	w := &Work{
		ID:           c.GetId(),
		Method:       c.GetMethod(),
		TraceContext: c.GetTraceContext(),
		Timeout:      c.GetTimeout().AsDuration(),
		method:       m,
		holds:        c.GetDesiredDigest(),
	}
	if c.GetSubject() != "" {
		w.about = h.state.commit(c.GetSubject(), set)
		w.about.calls++
		w.Cache, w.CacheBytes = w.about.cache, w.about.cacheBytes
		h.evict()
	}
	h.work[w.ID] = w
	w.Request, err = m.rebuild(c.GetEnvelope(), set)
	if err != nil { // keep the set, because the engine assumes that we have it
		h.Refuse(w, &statuspb.Status{Code: int32(code.Code_INTERNAL), Message: err.Error()})
		return HookReceived{}, nil
	}
	h.completeMeta(w.Request)
	return HookReceived{Work: w}, nil
}

// completeMeta adds to the meta of a request what the Hello said for all requests.
func (h *Hook) completeMeta(request proto.Message) {
	r, ok := request.(interface{ GetMeta() *hookv1.RequestMeta })
	if !ok || r.GetMeta() == nil {
		return
	}
	r.GetMeta().EngineVersion = h.hello.GetBuildId()
	r.GetMeta().Features = h.hello.GetFeatures()
}

// rebuild decodes a request from its envelope and adds the objects.
func (m method) rebuild(envelope []byte, set *set) (proto.Message, error) {
	request := m.NewRequest()
	if err := proto.Unmarshal(envelope, request); err != nil {
		return nil, fmt.Errorf("the request is no %T: %w", request, err)
	}
	if err := m.checkEnvelope(request); err != nil {
		return nil, err
	}
	return request, m.fill(request, set)
}

// Answer answers work with a response, of which it sends only the changes. If the response has the
// wrong type or exceeds the engine's limit, it sends an error instead. Work that was answered
// before is ignored. Do not modify the desired objects afterwards.
func (h *Hook) Answer(w *Work, response proto.Message) {
	if h.work[w.ID] != w {
		return
	}
	desired, list, err := w.desired(response)
	if err != nil {
		h.Refuse(w, &statuspb.Status{Code: int32(code.Code_INTERNAL), Message: err.Error()})
		return
	}
	m := answerMessage(&streamv1.Answer{CallId: w.ID, Outcome: &streamv1.Answer_Desired{Desired: desired}})
	if size := uint64(proto.Size(m)); h.accepts > 0 && size > h.accepts { //nolint:gosec // not negative
		text := fmt.Sprintf("the answer has %d bytes, which is larger than max (%d)", size, h.accepts)
		h.Refuse(w, &statuspb.Status{Code: int32(code.Code_RESOURCE_EXHAUSTED), Message: text})
		return
	}
	if w.about != nil {
		h.state.answered(w.about, list, w.Cache, w.CacheBytes)
	}
	h.end(w)
	h.send(m)
	h.evict()
}

// desired returns a response as changes, and the list of its desired objects.
func (w *Work) desired(response proto.Message) (*streamv1.Desired, *itemList, error) {
	if want := w.method.NewResponse(); response.ProtoReflect().Descriptor() != want.ProtoReflect().Descriptor() {
		return nil, nil, fmt.Errorf("got a response of type %T, expected %T", response, want)
	}
	var objects []*hookv1.DesiredObject
	if field, _ := w.method.Desired(response); field != nil {
		objects = *field
		*field = nil
		defer func() { *field = objects }()
	}
	envelope, err := canonical.Marshal(response)
	if err != nil {
		return nil, nil, err
	}
	d := &streamv1.Desired{Envelope: envelope}
	var before *itemList
	if w.about != nil && len(w.holds) > 0 && w.about.list != nil && w.about.list.digest.is(w.holds) {
		before = w.about.list
		d.Base = w.holds
	}
	list := before
	if before.has(objects) { // so it is after most events
		d.Pieces = before.whole()
	} else {
		items, err := w.items(objects)
		if err != nil {
			return nil, nil, err
		}
		list, d.Pieces, err = difference(before, items, objects)
		if err != nil {
			return nil, nil, err
		}
	}
	d.Digest = list.digest.wire()
	return d, list, nil
}

// items encodes desired objects. If a message is identical to one in the last answer, its item is
// used again.
func (w *Work) items(objects []*hookv1.DesiredObject) ([]newItem, error) {
	last := &itemList{}
	if w.about != nil && w.about.list != nil {
		last = w.about.list
	}
	items := make([]newItem, len(objects))
	for i, o := range objects {
		if i < len(last.items) && last.messages[i] == o {
			items[i] = newItem{item: last.items[i]}
			continue
		}
		raw, err := canonical.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("desired object %d: %w", i, err)
		}
		items[i] = newItem{item: item{hash: hashOf(raw), size: len(raw)}, raw: raw}
	}
	return items, nil
}

// canonical encodes equal messages to equal bytes within one build of a program, which is enough to
// compare them.
var canonical = proto.MarshalOptions{Deterministic: true}

// Refuse answers work with an error. Work that was answered before is ignored.
func (h *Hook) Refuse(w *Work, s *statuspb.Status) {
	if h.work[w.ID] != w {
		return
	}
	h.end(w)
	h.refuse(w.ID, s)
}

// end removes work from the open calls.
func (h *Hook) end(w *Work) {
	delete(h.work, w.ID)
	if w.about != nil {
		w.about.calls--
	}
}

func (h *Hook) refuse(id uint64, s *statuspb.Status) {
	h.answer(&streamv1.Answer{CallId: id, Outcome: &streamv1.Answer_Error{Error: s}})
}

func (h *Hook) answer(a *streamv1.Answer) { h.send(answerMessage(a)) }

func answerMessage(a *streamv1.Answer) *streamv1.HookMessage {
	return &streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: a}}
}

// evict evicts subjects from the state and tells the engine.
func (h *Hook) evict() {
	if names := h.state.evict(); len(names) > 0 {
		h.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Forget{Forget: &streamv1.Forget{Subjects: names}}})
	}
}

// Drain tells the engine to make no more calls. It does nothing before the Hello, or when called
// again.
func (h *Hook) Drain() {
	if !h.draining && h.state != nil {
		h.draining = true
		h.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Drain{Drain: &streamv1.Drain{}}})
	}
}

// Trigger asks for syncs.
func (h *Hook) Trigger(t *streamv1.Trigger) {
	h.send(&streamv1.HookMessage{Message: &streamv1.HookMessage_Trigger{Trigger: t}})
}

// Busy reports whether a call is open.
func (h *Hook) Busy() bool { return len(h.work) > 0 }

// Lost must be called when the stream has ended. It drops open calls, so that another stream can
// use the state.
func (h *Hook) Lost() {
	for _, w := range slices.Collect(maps.Values(h.work)) {
		h.end(w)
	}
	if h.state != nil && !h.common.has(resume) {
		h.state.clear()
	}
	h.out = nil
}

// Outbox returns messages to send, in order, and removes them.
func (h *Hook) Outbox() []*streamv1.HookMessage {
	out := h.out
	h.out = nil
	return out
}

// send queues a message. A large one is cut into fragments if the engine can reassemble them.
func (h *Hook) send(m *streamv1.HookMessage) {
	if !h.common.has(fragments) {
		h.out = append(h.out, m)
		return
	}
	h.out = append(h.out, fragmented(m, proto.Size(m), func(f *streamv1.Fragment) *streamv1.HookMessage {
		return &streamv1.HookMessage{Message: &streamv1.HookMessage_Fragment{Fragment: f}}
	})...)
}
