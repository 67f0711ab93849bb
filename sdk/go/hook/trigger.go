package hook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Trigger names parents that should be synced, because something has changed that Hookloop does not
// watch.
type Trigger struct {
	// Controller is the controller's name; empty stands for all that the hook serves.
	Controller string
	// ControllerKind is CompositeController or DecoratorController; empty stands for both.
	ControllerKind string
	// Parents by name. Without any, LabelSelector says which ("team=blue", as kubectl takes it);
	// without both, all.
	Parents       []ParentName
	LabelSelector string
	// Reason says why, in a few words, for the log and the traces.
	Reason string
}

// ParentName names a parent; the namespace is empty for a cluster-scoped one.
type ParentName struct{ Namespace, Name string }

func (t Trigger) message(id uint64) *streamv1.Trigger {
	m := &streamv1.Trigger{
		Id:             id,
		ControllerName: t.Controller,
		ControllerKind: t.ControllerKind,
		LabelSelector:  t.LabelSelector,
		Reason:         t.Reason,
	}
	for _, p := range t.Parents {
		m.Parents = append(m.Parents, &streamv1.ParentName{Namespace: p.Namespace, Name: p.Name})
	}
	return m
}

// ErrNoStream says that no engine has a stream open, so that nobody hears a trigger.
var ErrNoStream = errors.New("no stream is open")

// Triggers asks for syncs over the open streams of a server (Options.Triggers). The zero value is
// ready. It is safe for concurrent use.
type Triggers struct{ triggers }

// Send asks at the other ends of all open streams, of which each serves one controller or worker,
// and returns how many parents will be synced. The error is ErrNoStream or, where no stream takes
// the trigger, a refusal: a gRPC status, INVALID_ARGUMENT where the trigger is wrong,
// RESOURCE_EXHAUSTED where there were too many.
func (t *Triggers) Send(ctx context.Context, trigger Trigger) (parents int, err error) {
	return t.send(ctx, trigger)
}

type triggers struct {
	last atomic.Uint64

	mu      sync.Mutex // guards what follows
	streams map[*exchange]bool
	waiting map[uint64]waiting
}

// waiting is a trigger without an answer.
type waiting struct {
	on     *exchange
	answer chan *streamv1.TriggerResult // has room for one
}

// join takes a stream in whose session is open: before that nothing may be said on it.
func (t *triggers) join(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		t.streams, t.waiting = map[*exchange]bool{}, map[uint64]waiting{}
	}
	t.streams[x] = true
}

// leave takes a stream out. Triggers that were sent on it have no answer any more.
func (t *triggers) leave(x *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.streams, x)
	for id, w := range t.waiting {
		if w.on == x {
			w.answer <- &streamv1.TriggerResult{Id: id, Error: &statuspb.Status{Code: int32(codes.Unavailable), Message: "the stream has ended"}}
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
				//nolint:gosec // codes are few
				err = status.Error(codes.Code(refused.GetCode()), refused.GetMessage())
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

// ask sends a trigger on every stream.
func (t *triggers) ask(trigger Trigger) map[uint64]chan *streamv1.TriggerResult {
	t.mu.Lock()
	defer t.mu.Unlock()
	asked := map[uint64]chan *streamv1.TriggerResult{}
	for x := range t.streams {
		id, answer := t.last.Add(1), make(chan *streamv1.TriggerResult, 1)
		asked[id], t.waiting[id] = answer, waiting{x, answer}
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
