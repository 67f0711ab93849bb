package verifystream

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// skipError ends a dialogue that the hook's Welcome excludes.
type skipError struct{ reason string }

func (e *skipError) Error() string { return e.reason }

// player plays one dialogue. It is not safe for concurrent use.
type player struct {
	Options
	*dialogue
	ctx      context.Context
	hook     opener
	session  string
	stream   *stream
	previous *stream // the stream that an overlap has replaced
	peer     *peer   // of the open stream
	shared   *memory
	log      []string
}

// play plays a dialogue to its end.
func play(ctx context.Context, o Options, hook opener, d *dialogue) Result {
	p := &player{
		Options: o, dialogue: d, ctx: ctx, hook: hook, session: uuid.NewString(), shared: newMemory(),
	}
	err := p.steps()
	for _, s := range []*stream{p.stream, p.previous} {
		if s != nil {
			s.close()
		}
	}
	var skip *skipError
	switch {
	case errors.As(err, &skip):
		return Result{Name: d.name, Outcome: Skipped, Detail: skip.reason}
	case err != nil:
		detail := err.Error()
		if o.Transcript {
			detail += "\n    " + strings.Join(p.log, "\n    ")
		}
		return Result{Name: d.name, Outcome: Failed, Detail: detail}
	}
	return Result{Name: d.name, Outcome: Passed, Detail: d.Title}
}

// steps plays all steps, then drains the stream.
func (p *player) steps() error {
	if err := p.open(); err != nil {
		return fmt.Errorf("open the stream: %w", err)
	}
	for n, s := range p.Steps {
		err := p.step(s)
		var skip *skipError
		if err != nil && !errors.As(err, &skip) {
			note := ""
			if s.Note != "" {
				note = " (" + s.Note + ")"
			}
			return fmt.Errorf("step %d%s: %w", n+1, note, err)
		}
		if err != nil {
			return err
		}
	}
	if err := p.finish(); err != nil {
		return fmt.Errorf("after the last step: %w", err)
	}
	return nil
}

func (p *player) step(s step) error {
	switch {
	case s.Hello != nil:
		return p.hello(s)
	case s.Send != nil:
		return p.send(s)
	case s.Expect != nil:
		return p.expect(s.Expect)
	case s.ExpectAll != nil:
		return p.expectAll(s.ExpectAll)
	case s.Ends != nil:
		return p.ends(s.Ends)
	case s.Reconnect:
		p.stream.close()
		return p.open()
	case s.Overlap:
		p.previous = p.stream
		return p.open()
	case s.PreviousEnds:
		return p.previousEnds()
	case s.Burst != nil:
		return p.burst(*s.Burst)
	}
	return errors.New("the step is empty")
}

// open opens a stream. A hook that dials in must name the session that it can resume.
func (p *player) open() error {
	l, err := p.hook.open(p.ctx)
	if err != nil {
		return err
	}
	before := p.peer
	p.stream, p.peer = newStream(l), newPeer(p.shared)
	if !p.hook.dialsIn() {
		return nil
	}
	m, err := p.stream.next(p.ctx, p.Wait)
	if err != nil {
		return err
	}
	p.record("←", m)
	a := m.GetAttach()
	switch {
	case a == nil:
		return fmt.Errorf("the hook's first message is %s, expected an Attach", kindOf(m))
	case (a.GetWorker() == "") == (a.GetIntercept() == nil):
		return errors.New("the Attach names a worker and an intercept, or neither; expected one of them")
	case before == nil || p.session == "" || !before.has(streamv1.Capability_CAPABILITY_RESUME):
		return nil
	case a.GetSessionId() != p.session:
		return fmt.Errorf("the Attach's session_id is %q, expected %q, because both sides have CAPABILITY_RESUME",
			a.GetSessionId(), p.session)
	}
	return nil
}

// hello sends a Hello, in which the step replaces the usual fields, and waits for the Welcome.
func (p *player) hello(s step) error {
	fields := map[string]any{
		"versions": []any{1}, "buildId": "hookloop verify-stream", "maxMessageBytes": 64 << 20,
		"capabilities": []any{
			"CAPABILITY_CHANGES", "CAPABILITY_OBJECT_HASHES", "CAPABILITY_FRAGMENTS", "CAPABILITY_RESUME",
		},
	}
	maps.Copy(fields, s.Hello)
	if err := p.send(step{Send: map[string]any{"hello": fields}, Unknown: s.Unknown}); err != nil {
		return err
	}
	if s.Expect != nil {
		return p.expect(s.Expect)
	}
	return p.expect(map[string]any{"welcome": map[string]any{"version": json.Number("1")}})
}

// send sends a message. It waits until the window allows a call.
func (p *player) send(s step) error {
	m, err := p.message(s)
	if err != nil {
		return err
	}
	if hello := m.GetHello(); hello != nil {
		if tree, _ := s.Send["hello"].(map[string]any); tree["sessionId"] == nil {
			hello.SessionId = p.session
		}
		p.session = hello.GetSessionId()
		p.peer.hello(hello)
	}
	if call := m.GetCall(); call != nil {
		if err := p.awaitWindow(); err != nil {
			return err
		}
		p.peer.called(call)
	}
	if limit := p.peer.maxMessageBytes; limit > 0 && uint64(proto.Size(m)) > limit { //nolint:gosec // not negative
		return &skipError{fmt.Sprintf("the hook accepts messages of at most %d bytes", limit)}
	}
	return p.put(m, s.FragmentBytes)
}

func (p *player) message(s step) (*streamv1.EngineMessage, error) {
	e := encoder{
		objects: p.objects, trigger: p.peer.lastTrigger,
		last: func(subject string) []byte { return p.shared.last[subject] },
	}
	m := &streamv1.EngineMessage{}
	if err := e.encode(s.Send, m); err != nil {
		return nil, err
	}
	unknown, err := hex.DecodeString(s.Unknown)
	if err != nil {
		return nil, fmt.Errorf("unknown: %w", err)
	}
	m.ProtoReflect().SetUnknown(unknown)
	return m, nil
}

// fragmentBytes is the largest data of a fragment.
const fragmentBytes = 1 << 20

// put sends a message: in fragments if the step asks for it, or if it is large and both sides have
// the capability.
func (p *player) put(m *streamv1.EngineMessage, size int) error {
	p.record("→", m)
	if size == 0 && p.peer.has(streamv1.Capability_CAPABILITY_FRAGMENTS) && proto.Size(m) > fragmentBytes {
		size = fragmentBytes
	}
	if size == 0 {
		return p.stream.send(m)
	}
	data, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	total := uint64(len(data))
	for index := uint32(0); len(data) > 0; index++ {
		n := min(size, len(data))
		f := &streamv1.Fragment{Index: index, TotalBytes: total, Data: data[:n]}
		if err := p.stream.send(&streamv1.EngineMessage{Message: &streamv1.EngineMessage_Fragment{Fragment: f}}); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// awaitWindow waits until the window allows one more call.
func (p *player) awaitWindow() error {
	for p.peer.welcome != nil && !p.peer.free() {
		if err := p.pull(); err != nil {
			return fmt.Errorf("the window allows no call (%s): %w", p.peer.usage(), err)
		}
	}
	return nil
}

// pull handles the next message of the hook. A visible one waits for the steps.
func (p *player) pull() error {
	m, err := p.stream.next(p.ctx, p.Wait)
	if err != nil {
		return err
	}
	p.record("←", m)
	return p.peer.receive(m)
}

// next returns the next visible message.
func (p *player) next() (any, error) {
	for len(p.peer.visible) == 0 {
		if err := p.pull(); err != nil {
			return nil, err
		}
	}
	tree := p.peer.visible[0]
	p.peer.visible = p.peer.visible[1:]
	return tree, nil
}

func (p *player) expect(tree map[string]any) error {
	want := expanded(tree)
	got, err := p.next()
	if err != nil {
		return fmt.Errorf("%w; expected %s", err, text(want))
	}
	if difference := match(want, got, ""); difference != "" {
		return errors.New(difference)
	}
	if p.peer.welcome != nil && p.peer.needs(p.Needs) != "" {
		return &skipError{p.peer.needs(p.Needs)}
	}
	return nil
}

// expectAll expects messages in any order.
func (p *player) expectAll(trees []map[string]any) error {
	left := slices.Clone(trees)
	for len(left) > 0 {
		got, err := p.next()
		if err != nil {
			return fmt.Errorf("%w; expected %s", err, text(expanded(left[0])))
		}
		var differences []string
		found := slices.IndexFunc(left, func(tree map[string]any) bool {
			difference := match(expanded(tree), got, "")
			differences = append(differences, difference)
			return difference == ""
		})
		if found < 0 {
			return fmt.Errorf("got %s, which is none of the expected messages: %s", text(got), strings.Join(differences, "; "))
		}
		left = slices.Delete(left, found, found+1)
	}
	return nil
}

// ends expects the end of the stream with one of some codes.
func (p *player) ends(expected []string) error {
	for len(p.peer.visible) == 0 {
		err := p.pull()
		var end *endError
		switch {
		case errors.As(err, &end):
			return p.checkEnd(end, expected)
		case err != nil:
			return fmt.Errorf("%w; expected the end of the stream with %s", err, strings.Join(expected, " or "))
		}
	}
	return fmt.Errorf("got %s, expected the end of the stream with %s", text(p.peer.visible[0]),
		strings.Join(expected, " or "))
}

// previousEnds expects the end of the replaced stream.
func (p *player) previousEnds() error {
	for {
		m, err := p.previous.next(p.ctx, p.Wait)
		var end *endError
		switch {
		case errors.As(err, &end):
			p.previous.close()
			return nil
		case err != nil:
			return fmt.Errorf("%w on the previous stream, expected its end because another stream has its session", err)
		}
		p.record("← (previous stream)", m)
	}
}

// checkEnd checks the status of a stream. A hook that dialled in cannot send one.
func (p *player) checkEnd(end *endError, expected []string) error {
	code := strings.ToUpper(snake(end.status.Code().String()))
	if !p.hook.dialsIn() && !slices.Contains(expected, code) {
		return fmt.Errorf("the stream ended with %s %q, expected %s", code, end.status.Message(),
			strings.Join(expected, " or "))
	}
	p.stream.close()
	return nil
}

// snake returns the name of a code in the form of google.rpc.Code.
func snake(name string) string {
	if name == codes.Canceled.String() {
		return "CANCELLED"
	}
	var out strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' && name != codes.OK.String() {
			out.WriteByte('_')
		}
		out.WriteRune(r)
	}
	return out.String()
}

// finish drains an open stream. The hook must answer all calls, send nothing else, and end the
// stream.
func (p *player) finish() error {
	if p.stream.closed {
		return nil
	}
	drain := &streamv1.EngineMessage{Message: &streamv1.EngineMessage_Drain{Drain: &streamv1.Drain{}}}
	if err := p.put(drain, 0); err != nil {
		return err
	}
	if err := p.ends([]string{"OK"}); err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	if ids := slices.Sorted(maps.Keys(p.peer.calls)); len(ids) > 0 {
		return fmt.Errorf("drain: the stream ended without answers to the calls %v", ids)
	}
	return nil
}

// record adds a message to the transcript.
func (p *player) record(direction string, m proto.Message) {
	if p.Transcript {
		p.log = append(p.log, direction+" "+text(render(m.ProtoReflect())))
	}
}

// burst makes many calls at a time, and waits for their answers.
func (p *player) burst(b burst) error {
	open := map[uint64]bool{}
	for n := range b.Count {
		tree := maps.Clone(b.Call)
		tree["id"] = b.First + uint64(n)
		m, err := p.message(step{Send: map[string]any{"call": tree}})
		if err != nil {
			return err
		}
		if b.Beyond > 0 && !p.peer.free() {
			b.Beyond--
		} else if err := p.awaitWindow(); err != nil {
			return err
		}
		p.peer.called(m.GetCall())
		open[m.GetCall().GetId()] = true
		if err := p.put(m, 0); err != nil {
			return err
		}
	}
	for len(open) > 0 {
		got, err := p.next()
		if err != nil {
			return fmt.Errorf("%d calls have no answer: %w", len(open), err)
		}
		id, outcome := answerOf(got)
		if !open[id] || outcome != "desired" && outcome != "error" {
			return fmt.Errorf("got %s, expected an answer to one of %d calls", text(got), len(open))
		}
		delete(open, id)
	}
	return nil
}

// timeoutError reports that the hook has sent nothing.
type timeoutError struct{ after time.Duration }

func (e *timeoutError) Error() string { return fmt.Sprintf("got no message within %v", e.after) }
