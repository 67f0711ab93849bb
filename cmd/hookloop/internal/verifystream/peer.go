package verifystream

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// peer checks the rules that hold for every message of a hook on one stream.
type peer struct {
	shared          *memory
	offered         []streamv1.Capability
	welcome         *streamv1.Welcome
	window          *streamv1.Window
	maxMessageBytes uint64
	accepts         uint64 // the largest message that the engine accepts
	lastID          uint64
	calls           map[uint64]*call
	openBytes       uint64
	lastTrigger     uint64
	fragments       []byte
	fragmentTotal   uint64
	fragmentIndex   uint32
	// visible are the messages for the steps, as trees.
	visible []any
}

// memory is the part of the engine's state that outlives a stream.
type memory struct {
	lists map[string][][]byte // the lists of answers, by digest
	last  map[string][]byte   // the digest of the last list, by subject
}

func newMemory() *memory { return &memory{lists: map[string][][]byte{}, last: map[string][]byte{}} }

// call is an open call.
type call struct {
	*streamv1.Call
	size uint64
}

// servedMethods are the methods of the reference hook.
var servedMethods = []string{compositeService + "Customize", compositeService + "Sync"}

func newPeer(shared *memory) *peer { return &peer{shared: shared, calls: map[uint64]*call{}} }

func (p *peer) hello(m *streamv1.Hello) {
	if p.welcome == nil {
		p.offered, p.accepts = m.GetCapabilities(), m.GetMaxMessageBytes()
	}
}

// has reports whether both sides have a capability.
func (p *peer) has(c streamv1.Capability) bool {
	return slices.Contains(p.offered, c) && slices.Contains(p.welcome.GetCapabilities(), c)
}

// needs returns the reason to skip a dialogue, or "".
func (p *peer) needs(n needs) string {
	for _, name := range n.Capabilities {
		if !slices.Contains(p.welcome.GetCapabilities(), streamv1.Capability(streamv1.Capability_value[name])) {
			return "the hook does not have " + name
		}
	}
	if p.window.GetCalls() < n.Calls {
		return fmt.Sprintf("the hook's window allows %d calls, the dialogue needs %d", p.window.GetCalls(), n.Calls)
	}
	return ""
}

// called records a call. The hook ignores one with an old ID.
func (p *peer) called(m *streamv1.Call) {
	if m.GetId() <= p.lastID {
		return
	}
	p.lastID = m.GetId()
	c := &call{m, uint64(proto.Size(m))} //nolint:gosec // not negative
	p.calls[m.GetId()] = c
	p.openBytes += c.size
}

// free reports whether the window allows one more call.
func (p *peer) free() bool {
	return uint64(len(p.calls)) < uint64(p.window.GetCalls()) && p.openBytes < p.window.GetBytes()
}

func (p *peer) usage() string {
	return fmt.Sprintf("%d calls with %d bytes are open, the limits are %d and %d", len(p.calls), p.openBytes,
		p.window.GetCalls(), p.window.GetBytes())
}

// receive handles a message. An error is a violation of the protocol.
func (p *peer) receive(m *streamv1.HookMessage) error {
	if size := proto.Size(m); size > fragmentBytes && m.GetFragment() == nil {
		return fmt.Errorf("got a message of %d bytes in one piece, expected at most %d", size, fragmentBytes)
	}
	if f := m.GetFragment(); f != nil {
		return p.fragment(f)
	} else if p.fragmentTotal > 0 {
		return fmt.Errorf("got %s between the fragments of a message", kindOf(m))
	}
	if size := uint64(proto.Size(m)); p.accepts > 0 && size > p.accepts { //nolint:gosec // not negative
		return fmt.Errorf("got a message of %d bytes, expected at most Hello.max_message_bytes, %d", size, p.accepts)
	}
	return p.handle(m)
}

func (p *peer) handle(m *streamv1.HookMessage) error {
	if w := m.GetWelcome(); (w != nil) != (p.welcome == nil) {
		return fmt.Errorf("got %s, expected the Welcome as the first message, and only once", kindOf(m))
	}
	switch message := m.GetMessage().(type) {
	case *streamv1.HookMessage_Welcome:
		if err := p.welcomed(message.Welcome); err != nil {
			return err
		}
	case *streamv1.HookMessage_Window:
		p.window = message.Window
		return nil
	case *streamv1.HookMessage_Forget:
		for _, subject := range message.Forget.GetSubjects() {
			delete(p.shared.last, subject)
		}
		return nil
	case *streamv1.HookMessage_Answer:
		tree, err := p.answer(message.Answer)
		if err != nil {
			return fmt.Errorf("answer to call %d: %w", message.Answer.GetCallId(), err)
		}
		p.visible = append(p.visible, map[string]any{"answer": tree})
		return nil
	case *streamv1.HookMessage_Trigger:
		p.lastTrigger = message.Trigger.GetId()
	case *streamv1.HookMessage_Attach:
		return errors.New("got an Attach on an open stream")
	}
	p.visible = append(p.visible, render(m.ProtoReflect()))
	return nil
}

func (p *peer) welcomed(w *streamv1.Welcome) error {
	p.welcome, p.window, p.maxMessageBytes = w, w.GetWindow(), w.GetMaxMessageBytes()
	switch {
	case len(w.GetBuildId()) > 256:
		return fmt.Errorf("the Welcome's build_id has %d bytes, expected at most 256", len(w.GetBuildId()))
	case len(w.GetMethods()) > 0 && !slices.Equal(slices.Sorted(slices.Values(w.GetMethods())), servedMethods):
		return fmt.Errorf("the Welcome's methods is %q, expected nothing or those of the reference hook, %q", w.GetMethods(),
			servedMethods)
	case len(w.GetSubjects()) > 0 && !p.has(streamv1.Capability_CAPABILITY_RESUME):
		return fmt.Errorf("the Welcome's subjects has %d subjects, expected none without CAPABILITY_RESUME",
			len(w.GetSubjects()))
	}
	return nil
}

// fragment adds a part of a message.
func (p *peer) fragment(f *streamv1.Fragment) error {
	if !p.has(streamv1.Capability_CAPABILITY_FRAGMENTS) {
		return errors.New("got a fragment, expected none because the engine does not have CAPABILITY_FRAGMENTS")
	}
	if p.fragmentTotal == 0 {
		p.fragmentTotal = f.GetTotalBytes()
	}
	n := len(f.GetData())
	switch {
	case f.GetIndex() != p.fragmentIndex || f.GetTotalBytes() != p.fragmentTotal:
		return fmt.Errorf("got fragment %d of %d bytes, expected fragment %d of %d bytes", f.GetIndex(), f.GetTotalBytes(),
			p.fragmentIndex, p.fragmentTotal)
	case n == 0 || n > fragmentBytes:
		return fmt.Errorf("fragment %d has %d bytes, expected 1 to %d", f.GetIndex(), n, fragmentBytes)
	case p.accepts > 0 && p.fragmentTotal > p.accepts:
		return fmt.Errorf("got a message of %d bytes, expected at most Hello.max_message_bytes, %d", p.fragmentTotal,
			p.accepts)
	}
	p.fragmentIndex++
	p.fragments = append(p.fragments, f.GetData()...)
	switch size := uint64(len(p.fragments)); {
	case size < p.fragmentTotal:
		return nil
	case size > p.fragmentTotal:
		return fmt.Errorf("the fragments have %d bytes, expected %d", size, p.fragmentTotal)
	}
	whole := &streamv1.HookMessage{}
	if err := proto.Unmarshal(p.fragments, whole); err != nil {
		return fmt.Errorf("the fragments are no HookMessage: %w", err)
	}
	p.fragments = nil
	p.fragmentTotal = 0
	p.fragmentIndex = 0
	return p.handle(whole)
}

// answer checks an answer, and returns its tree.
func (p *peer) answer(a *streamv1.Answer) (any, error) {
	c := p.calls[a.GetCallId()]
	if c == nil {
		return nil, fmt.Errorf("no call with this ID is open, expected one answer to each call")
	}
	delete(p.calls, a.GetCallId())
	p.openBytes -= c.size
	tree := map[string]any{"callId": json.Number(strconv.FormatUint(a.GetCallId(), 10))}
	switch outcome := a.GetOutcome().(type) {
	case *streamv1.Answer_Desired:
		desired, err := p.desired(c, outcome.Desired)
		tree["desired"] = desired
		return tree, err
	case *streamv1.Answer_Error:
		if outcome.Error.GetCode() == 0 {
			return nil, errors.New("the error has the code OK, expected another code")
		}
		tree["error"] = render(outcome.Error.ProtoReflect())
	case *streamv1.Answer_Nack:
		delete(p.shared.last, c.GetSubject())
		tree["nack"] = render(outcome.Nack.ProtoReflect())
	default:
		return nil, errors.New("has no outcome, expected desired, error or nack")
	}
	return tree, nil
}

// desired assembles the list of an answer and checks its digest. The tree has the list, the items
// that came with the answer, and the number of items that did not.
func (p *peer) desired(c *call, d *streamv1.Desired) (any, error) {
	var base [][]byte
	if len(d.GetBase()) > 0 {
		if !bytes.Equal(d.GetBase(), c.GetDesiredDigest()) {
			return nil, fmt.Errorf("desired.base is %x, expected nothing or Call.desired_digest, %x", d.GetBase(),
				c.GetDesiredDigest())
		}
		base = p.shared.lists[hex.EncodeToString(d.GetBase())]
	}
	items, inserted, err := assemble(base, d.GetPieces())
	if err != nil {
		return nil, err
	}
	if want := listDigest(items); !bytes.Equal(want, d.GetDigest()) {
		return nil, fmt.Errorf("desired.digest is %x, expected %x, the digest of the %d items", d.GetDigest(), want,
			len(items))
	}
	p.shared.lists[hex.EncodeToString(d.GetDigest())] = items
	if c.GetSubject() != "" {
		p.shared.last[c.GetSubject()] = d.GetDigest()
	}
	envelope, err := responseOf(c.GetMethod(), d.GetEnvelope())
	if err != nil {
		return nil, err
	}
	list, err := renderItems(items)
	if err != nil {
		return nil, err
	}
	fresh, err := renderItems(inserted)
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"base": hex.EncodeToString(d.GetBase()), "digest": hex.EncodeToString(d.GetDigest()), "envelope": envelope,
		"list": list, "inserted": fresh, "kept": json.Number(strconv.Itoa(len(items) - len(inserted))),
	}, nil
}

// assemble returns the items of a list, and those that the pieces contain.
func assemble(base [][]byte, pieces []*streamv1.Piece) (items, inserted [][]byte, err error) {
	for n, piece := range pieces {
		switch content := piece.GetContent().(type) {
		case *streamv1.Piece_Keep:
			first := uint64(content.Keep.GetFirst())
			count := uint64(content.Keep.GetCount())
			if count == 0 || first+count > uint64(len(base)) {
				return nil, nil, fmt.Errorf("desired.pieces[%d] keeps %d items from %d on, expected some of the %d of base", n,
					count, first, len(base))
			}
			items = append(items, base[first:first+count]...)
		case *streamv1.Piece_Insert:
			items = append(items, content.Insert)
			inserted = append(inserted, content.Insert)
		default:
			return nil, nil, fmt.Errorf("desired.pieces[%d] has neither keep nor insert", n)
		}
	}
	return items, inserted, nil
}

func renderItems(items [][]byte) ([]any, error) {
	out := make([]any, len(items))
	for i, item := range items {
		m := &hookv1.DesiredObject{}
		if err := proto.Unmarshal(item, m); err != nil {
			return nil, fmt.Errorf("item %d is no hookloop.hook.v1.DesiredObject: %w", i, err)
		}
		out[i] = render(m.ProtoReflect())
	}
	return out, nil
}

// responseOf decodes an envelope as the response of a method.
func responseOf(method string, envelope []byte) (any, error) {
	output, err := messageType(method, protoreflect.MethodDescriptor.Output)
	if err != nil {
		return nil, err
	}
	m := output.New()
	if err := proto.Unmarshal(envelope, m.Interface()); err != nil {
		return nil, fmt.Errorf("desired.envelope is no %s: %w", m.Descriptor().FullName(), err)
	}
	if children := m.Descriptor().Fields().ByName("children"); children != nil && m.Get(children).List().Len() > 0 {
		return nil, errors.New("desired.envelope has children, expected them in the pieces")
	}
	return render(m), nil
}

// answerOf returns the call and the kind of outcome of an answer's tree.
func answerOf(tree any) (id uint64, outcome string) {
	message, _ := tree.(map[string]any)
	answer, _ := message["answer"].(map[string]any)
	number, _ := answer["callId"].(json.Number)
	id, _ = strconv.ParseUint(string(number), 10, 64)
	for key := range answer {
		if key != "callId" {
			outcome = key
		}
	}
	return id, outcome
}

// kindOf returns the name of a message for a report.
func kindOf(m *streamv1.HookMessage) string {
	r := m.ProtoReflect()
	if field := r.WhichOneof(r.Descriptor().Oneofs().Get(0)); field != nil {
		return string(field.Name())
	}
	return "a message of an unknown kind"
}
