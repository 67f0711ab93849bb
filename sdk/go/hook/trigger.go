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

// Trigger requests syncs of parents because of a change that Hookloop does not watch.
type Trigger struct {
	// ControllerName is the controller's name. The default is all controllers that the hook serves.
	ControllerName string
	// ControllerKind is CompositeController, DecoratorController or MapController. The default is
	// all.
	ControllerKind string
	// Parents selects parents by name. Without it, LabelSelector selects them, in kubectl's syntax:
	// "team=blue". Without both, the trigger is for all parents.
	Parents       []ParentName
	LabelSelector string
	// Reason is a short text for the log and the traces, at most 256 bytes. Bytes that are not UTF-8
	// are replaced.
	Reason string
}

// ParentName is the name of a parent. The namespace of a cluster-scoped parent is empty.
type ParentName struct{ Namespace, Name string }

// check returns an error if a field is not UTF-8, which protobuf cannot encode.
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

// ErrNoStream reports that no engine has a stream open.
var ErrNoStream = errors.New("no stream is open")

// Triggers sends triggers over the open streams of a server or an attachment (Options.Triggers).
// The zero value is ready for use. It is safe for concurrent use.
type Triggers struct{ triggers }

// Send sends a trigger over all open streams, each of which serves one controller or worker, and
// returns the number of parents that will be synced. The error is ErrNoStream or, if no stream
// accepts the trigger, the first refusal: a gRPC status, INVALID_ARGUMENT for an invalid trigger
// and RESOURCE_EXHAUSTED for too many triggers.
func (t *Triggers) Send(ctx context.Context, trigger Trigger) (parents int, err error) {
	return t.send(ctx, trigger)
}

type triggers struct {
	last atomic.Uint64

	mu      sync.Mutex // guards the fields below
	streams map[*exchange]bool
	waiting map[uint64]waiting
}

// waiting is a trigger without a result.
type waiting struct {
	on     *exchange
	answer chan *streamv1.TriggerResult // has room for one
}

// join adds a stream with an open session. Before that, the stream accepts no triggers.
func (t *triggers) join(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		t.streams = map[*exchange]bool{}
		t.waiting = map[uint64]waiting{}
	}
	t.streams[x] = true
}

// leave removes a stream, and ends its waiting triggers.
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
	if taken { // those that refuse serve other controllers
		err = nil
	}
	return parents, err
}

// refusal returns the error of a result. A result with an error is a refusal, whatever its code is.
func refusal(s *statuspb.Status) error {
	if s.GetCode() == int32(codes.OK) {
		return status.Errorf(codes.Internal, "the engine refused the trigger with the code OK: %s", s.GetMessage())
	}
	//nolint:gosec // codes are few
	return status.Error(codes.Code(s.GetCode()), s.GetMessage())
}

// ask sends a trigger over every stream. A stream that has left meanwhile sends nothing more; leave
// has answered for it.
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
