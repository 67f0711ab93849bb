package hook

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Trigger names parents that should be synced, because something has changed that Hookloop does not watch.
type Trigger struct {
	// Controller is the controller's name; empty stands for all that the hook serves.
	Controller string
	// Parents by name. Without any, LabelSelector says which ("team=blue", as kubectl takes it); without both, all.
	Parents       []ParentName
	LabelSelector string
	// Reason says why, in a few words, for the log and the traces.
	Reason string
}

// ParentName names a parent; the namespace is empty for a cluster-scoped one.
type ParentName struct{ Namespace, Name string }

func (t Trigger) message(id uint64) *streamv1.Trigger {
	m := &streamv1.Trigger{Id: id, ControllerName: t.Controller, LabelSelector: t.LabelSelector, Reason: t.Reason}
	for _, p := range t.Parents {
		m.Parents = append(m.Parents, &streamv1.ParentName{Namespace: p.Namespace, Name: p.Name})
	}
	return m
}

// ErrNoStream says that no engine has a stream open, so that nobody hears a trigger.
var ErrNoStream = errors.New("no stream is open")

// Triggers asks for syncs over the open streams of a server (Options.Triggers). The zero value is ready. It is safe for concurrent use.
type Triggers struct{ triggers }

// Send asks the engines at the other ends of all open streams, and returns how many parents they will sync. The error is ErrNoStream, or the
// first refusal: a gRPC status, INVALID_ARGUMENT where the trigger is wrong, RESOURCE_EXHAUSTED where there were too many.
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
	answer chan *streamv1.Triggered // has room for one
}

// join takes a stream in, and returns what takes it out.
func (t *triggers) join(x *exchange) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == nil {
		t.streams, t.waiting = map[*exchange]bool{}, map[uint64]waiting{}
	}
	t.streams[x] = true
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.streams, x)
		for id, w := range t.waiting {
			if w.on == x {
				w.answer <- &streamv1.Triggered{Id: id, Error: &streamv1.Status{Code: int32(codes.Unavailable), Message: "the stream has ended"}}
				delete(t.waiting, id)
			}
		}
	}
}

func (t *triggers) answered(a *streamv1.Triggered) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w, found := t.waiting[a.GetId()]; found {
		w.answer <- a
		delete(t.waiting, a.GetId())
	}
}

func (t *triggers) send(ctx context.Context, trigger Trigger) (parents int, err error) {
	answers := t.ask(trigger)
	if len(answers) == 0 {
		return 0, ErrNoStream
	}
	for _, answer := range answers {
		select {
		case a := <-answer:
			if refused := a.GetError(); refused != nil {
				err = errors.Join(err, status.Error(codes.Code(refused.GetCode()), refused.GetMessage())) //nolint:gosec // codes are few
			}
			parents += int(a.GetParents())
		case <-ctx.Done():
			return parents, ctx.Err()
		}
	}
	return parents, err
}

// ask sends a trigger on every stream.
func (t *triggers) ask(trigger Trigger) []chan *streamv1.Triggered {
	t.mu.Lock()
	defer t.mu.Unlock()
	var answers []chan *streamv1.Triggered
	for x := range t.streams {
		id := t.last.Add(1)
		answer := make(chan *streamv1.Triggered, 1)
		t.waiting[id] = waiting{x, answer}
		answers = append(answers, answer)
		x.do(func() { x.hook.Trigger(trigger.message(id)) })
	}
	return answers
}
