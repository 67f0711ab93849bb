package hook

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Trigger asks Hookloop to sync parents, because something changed that Hookloop does not watch.
// Use [Triggers.Send] or [Gateway.Trigger] to send it.
type Trigger struct {
	// ControllerName restricts the trigger to one controller. If it is empty, the trigger goes to
	// all controllers that use the hook.
	ControllerName string
	// ControllerKind is CompositeController, DecoratorController or MapController. If it is empty,
	// kinds do not matter.
	ControllerKind string
	// Parents selects parents by name. If it is empty, LabelSelector selects them in kubectl's
	// syntax, such as "team=blue". If both are empty, all parents are synced.
	Parents       []ParentName
	LabelSelector string
	// Reason is shown in the log and in traces. It should not exceed 256 bytes. Bytes that are not
	// UTF-8 are replaced.
	Reason string
}

// ParentName identifies a parent. Namespace must be empty for a cluster-scoped parent.
type ParentName struct{ Namespace, Name string }

// check returns an error if a field is not UTF-8, because protobuf cannot encode it.
func (t Trigger) check() error {
	fields := []struct{ name, text string }{
		{"ControllerName", t.ControllerName}, {"ControllerKind", t.ControllerKind}, {"LabelSelector", t.LabelSelector},
	}
	for i, p := range t.Parents {
		fields = append(fields, struct{ name, text string }{fmt.Sprintf("Parents[%d]", i), p.Namespace + "/" + p.Name})
	}
	for _, f := range fields {
		if !utf8.ValidString(f.text) {
			return status.Errorf(codes.InvalidArgument, "trigger: %s is %q, expected UTF-8", f.name, f.text)
		}
	}
	return nil
}

func (t Trigger) message(id uint64) *streamv1.Trigger {
	m := &streamv1.Trigger{
		Id:             id,
		ControllerName: t.ControllerName,
		ControllerKind: t.ControllerKind,
		LabelSelector:  t.LabelSelector,
		Reason:         strings.ToValidUTF8(t.Reason, "\uFFFD"),
	}
	for _, p := range t.Parents {
		m.Parents = append(m.Parents, &streamv1.ParentName{Namespace: p.Namespace, Name: p.Name})
	}
	return m
}

// ErrNoStream is returned by [Triggers.Send] if no engine has opened a stream.
var ErrNoStream = errors.New("no stream is open")

// Triggers sends triggers over the streams that engines have opened. Set it in [Options].Triggers
// before you call [Serve] or [Attach]. The zero value is ready to use, and all methods are safe for
// concurrent use.
type Triggers struct{ triggers }

// Send sends a trigger over every open stream and waits for the answers. Each stream belongs to one
// controller or worker. Send returns how many parents will be synced. If no stream accepts the
// trigger, it returns the first refusal, a gRPC status: INVALID_ARGUMENT if the trigger is invalid,
// or RESOURCE_EXHAUSTED if there are too many triggers. If no stream is open, it returns
// [ErrNoStream].
func (t *Triggers) Send(ctx context.Context, trigger Trigger) (parents int, err error) {
	return t.send(ctx, trigger)
}

type triggers struct {
	last atomic.Uint64

	mu      sync.Mutex // guards the fields below
	streams map[*exchange]bool
	waiting map[uint64]waiting
}

// waiting is a trigger that the engine has not answered yet.
type waiting struct {
	on     *exchange
	answer chan *streamv1.TriggerResult // buffered, for one result
}

// join adds a stream whose session is open. Streams accept no triggers before that.
func (t *triggers) join(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		t.streams = map[*exchange]bool{}
		t.waiting = map[uint64]waiting{}
	}
	t.streams[x] = true
}

// leave removes a stream and answers the triggers that still wait for it.
func (t *triggers) leave(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, x)
	for id, w := range t.waiting {
		if w.on == x {
			w.answer <- &streamv1.TriggerResult{Id: id,
				Error: &statuspb.Status{Code: int32(codes.Unavailable), Message: "the stream has ended"}}
			delete(t.waiting, id)
		}
	}
}

func (t *triggers) answered(a *streamv1.TriggerResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w, found := t.waiting[a.GetId()]; found {
		w.answer <- a
		delete(t.waiting, a.GetId())
	}
}

func (t *triggers) send(ctx context.Context, trigger Trigger) (parents int, err error) {
	if err := trigger.check(); err != nil {
		return 0, err
	}
	asked := t.ask(trigger)
	if len(asked) == 0 {
		return 0, ErrNoStream
	}
	defer t.forget(asked)
	taken := false
	for _, answer := range asked {
		select {
		case a := <-answer:
			if refused := a.GetError(); refused == nil {
				taken = true
				parents += int(a.GetParents())
			} else if err == nil {
				err = refusal(refused)
			}
		case <-ctx.Done():
			return parents, ctx.Err()
		}
	}
	if taken { // streams that refuse belong to other controllers
		err = nil
	}
	return parents, err
}

// refusal turns a result into an error. A result with an error is a refusal even if its code is OK.
func refusal(s *statuspb.Status) error {
	if s.GetCode() == int32(codes.OK) {
		return status.Errorf(codes.Internal, "the engine refused the trigger with the code OK: %s", s.GetMessage())
	}
	//nolint:gosec // codes are few
	return status.Error(codes.Code(s.GetCode()), s.GetMessage())
}

// ask sends a trigger over every stream. If a stream ends meanwhile, leave has already answered for
// it.
func (t *triggers) ask(trigger Trigger) map[uint64]chan *streamv1.TriggerResult {
	asked := map[uint64]chan *streamv1.TriggerResult{}
	streams := map[uint64]*exchange{}
	t.mu.Lock()
	for x := range t.streams {
		id := t.last.Add(1)
		answer := make(chan *streamv1.TriggerResult, 1)
		asked[id], t.waiting[id] = answer, waiting{x, answer}
		streams[id] = x
	}
	t.mu.Unlock()
	for id, x := range streams { // a stream that joins holds its lock
		x.do(func() { x.hook.Trigger(trigger.message(id)) })
	}
	return asked
}

func (t *triggers) forget(asked map[uint64]chan *streamv1.TriggerResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id := range asked {
		delete(t.waiting, id)
	}
}
