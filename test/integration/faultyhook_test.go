package integration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/test/kit"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fault changes the messages of a hook: a Welcome, or the answer about the parent bad. With hangup
// the hook then ends the stream.
type fault func(m *streamv1.HookMessage) (instead []*streamv1.HookMessage, hangup bool)

// answering returns a fault of answers.
func answering(change func(*streamv1.Answer) []*streamv1.HookMessage) fault {
	return func(m *streamv1.HookMessage) ([]*streamv1.HookMessage, bool) {
		if a := m.GetAnswer(); a != nil {
			return change(a), false
		}
		return []*streamv1.HookMessage{m}, false
	}
}

// hangingUp ends the stream after the messages of a fault.
func hangingUp(f fault) fault {
	return func(m *streamv1.HookMessage) ([]*streamv1.HookMessage, bool) {
		instead, _ := f(m)
		return instead, m.GetAnswer() != nil
	}
}

// welcoming returns a fault of the first message; nil sends nothing at all.
func welcoming(change func(*streamv1.Welcome)) fault {
	return func(m *streamv1.HookMessage) ([]*streamv1.HookMessage, bool) {
		switch w := m.GetWelcome(); {
		case w != nil && change == nil:
			return nil, false
		case w != nil:
			change(w)
		}
		return []*streamv1.HookMessage{m}, false
	}
}

func saying(answers ...*streamv1.Answer) []*streamv1.HookMessage {
	var out []*streamv1.HookMessage
	for _, a := range answers {
		out = append(out, &streamv1.HookMessage{Message: &streamv1.HookMessage_Answer{Answer: a}})
	}
	return out
}

// part returns a fragment.
func part(index uint32, total uint64, data string) *streamv1.HookMessage {
	return &streamv1.HookMessage{
		Message: &streamv1.HookMessage_Fragment{
			Fragment: &streamv1.Fragment{Index: index, TotalBytes: total, Data: []byte(data)},
		},
	}
}

// faultyHook is the mirror over streams, with faults that a test sets. It answers one question
// after the other.
type faultyHook struct {
	streamv1.UnimplementedHookStreamServiceServer
	address string
	// dismissed is closed when the engine first sends a reason for ending a stream.
	dismissed chan struct{}
	// everyone extends the fault from the parent bad to all parents. It is set before the fault.
	everyone bool

	mu        sync.Mutex // guards the fields below
	fault     fault
	cut       chan struct{} // closed to end the open streams
	memories  map[string]*session.State
	goAways   []string
	triggered []*streamv1.TriggerResult
}

// serveFaulty serves a hook without a fault, until the test ends.
func serveFaulty(t *testing.T) *faultyHook {
	t.Helper()
	h := &faultyHook{
		cut:       make(chan struct{}),
		dismissed: make(chan struct{}),
		memories:  map[string]*session.State{},
	}
	server := grpc.NewServer(grpc.MaxSendMsgSize(64<<20), grpc.MaxRecvMsgSize(64<<20))
	streamv1.RegisterHookStreamServiceServer(server, h)
	h.address = grpctest.Serve(t, server)
	return h
}

// turn sets the fault, or removes it with nil. The hook's streams end; the engine opens others.
func (h *faultyHook) turn(f fault) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = f
	close(h.cut)
	h.cut = make(chan struct{})
}

// memory gives each stream what the one before it left. Two streams of one session do not overlap
// here.
func (h *faultyHook) memory(id string) *session.State {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.memories[id] == nil {
		h.memories[id] = session.NewState(0)
	}
	return h.memories[id]
}

// answers returns the results of the hook's triggers.
func (h *faultyHook) answers() []*streamv1.TriggerResult {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.triggered)
}

// awaitGoAway waits until the engine has sent a reason for ending a stream.
func (h *faultyHook) awaitGoAway(k *kit.Kit, part string) {
	k.Helper()
	k.Eventually(fmt.Sprintf("the hook gets the reason %q", part), func() error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if !slices.ContainsFunc(h.goAways, func(f string) bool { return strings.Contains(f, part) }) {
			return fmt.Errorf("it got %q", h.goAways)
		}
		return nil
	})
}

// Connect serves one stream until it is cut.
func (h *faultyHook) Connect(conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage]) error {
	h.mu.Lock()
	cut := h.cut
	h.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- h.serve(conn) }()
	select {
	case err := <-ended:
		return err
	case <-cut:
		return status.Error(codes.Unavailable, "the test has cut the stream")
	}
}

// serve answers questions, in their order.
func (h *faultyHook) serve(conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage]) error {
	machine := session.NewHook(session.HookConfig{State: h.memory})
	defer machine.Lost()
	for {
		m, err := conn.Recv()
		if err != nil {
			return err
		}
		got, err := machine.Receive(m)
		if err != nil {
			return err
		}
		h.note(got)
		about := "bad" // the Welcome is about no parent
		if got.Work != nil {
			about, err = answerOne(conn.Context(), machine, got.Work)
			if err != nil {
				return err
			}
		}
		if err := h.send(conn, about, machine.Outbox()); err != nil {
			return err
		}
	}
}

// note keeps the engine's messages.
func (h *faultyHook) note(got session.HookReceived) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := got.GoAway; f != nil {
		if len(h.goAways) == 0 {
			close(h.dismissed)
		}
		h.goAways = append(h.goAways, fmt.Sprintf("%s: %s", codes.Code(f.GetCode()), f.GetMessage()))
	}
	if got.TriggerResult != nil {
		h.triggered = append(h.triggered, got.TriggerResult)
	}
}

var errHungUp = errors.New("the hook hangs up")

// send sends messages, or those of the fault if they are about the parent bad.
func (h *faultyHook) send(
	conn grpc.BidiStreamingServer[streamv1.EngineMessage, streamv1.HookMessage],
	about string,
	messages []*streamv1.HookMessage,
) error {
	h.mu.Lock()
	change := h.fault
	h.mu.Unlock()
	for _, m := range messages {
		instead := []*streamv1.HookMessage{m}
		hangup := false
		if change != nil && (about == "bad" || h.everyone) {
			instead, hangup = change(m)
		}
		for _, m := range instead {
			if err := conn.Send(m); err != nil {
				return err
			}
		}
		if hangup {
			return errHungUp
		}
	}
	return nil
}

// answerOne answers a question like the mirror, and returns the parent's name.
func answerOne(ctx context.Context, machine *session.Hook, w *session.Work) (parent string, err error) {
	request, ok := w.Request.(*compositev1.SyncRequest)
	if !ok {
		return "", fmt.Errorf("got a %T, expected a sync", w.Request)
	}
	response, err := grpcMirror{}.Sync(ctx, request)
	if err != nil {
		return "", err
	}
	machine.Answer(w, response)
	return request.GetParent().GetName(), nil
}
