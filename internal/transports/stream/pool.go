package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// patience is how long a question waits for a session if there is none: a hook that restarts is
// back by then, and one that is down does not keep a worker.
const patience = 2 * time.Second

// Pool is the sessions of one hook. Questions about one parent go to the same session while there
// is one, so that what the hook holds is of use. Where sessions have different builds, one build
// gets them.
type Pool struct {
	clock   clock.Clock
	renewed func()

	mu       sync.Mutex // guards the fields below
	sessions []*Session
	builds   *builds
	changed  chan struct{}      // closed, and replaced, with every change
	fault    error              // why there is no session, as far as is known, where that is not about one of them
	faults   map[*Session]error // why a session is not open, as far as is known
	watchers map[*watcher]struct{}
}

// NewPool makes an empty pool. renewed is called, without a lock, when another build has taken
// over, so that answers may differ from before; it may be nil.
func NewPool(c clock.WithDelayedExecution, renewed func()) *Pool {
	return &Pool{
		clock:    c,
		renewed:  renewed,
		builds:   newBuilds(c),
		changed:  make(chan struct{}),
		faults:   map[*Session]error{},
		watchers: map[*watcher]struct{}{},
	}
}

// Add takes a session in.
func (p *Pool) Add(s *Session) { p.update(func() { p.sessions = append(p.sessions, s) }) }

// Remove takes a session out.
func (p *Pool) Remove(s *Session) {
	p.update(func() {
		p.sessions = slices.DeleteFunc(p.sessions, func(other *Session) bool { return other == s })
		delete(p.faults, s)
	})
}

// Forget drops, in all sessions, what is held about a parent of a controller that is gone.
func (p *Pool) Forget(controller, parent types.UID) {
	p.mu.Lock()
	sessions := slices.Clone(p.sessions)
	p.mu.Unlock()
	sets, customize := subjects(controller, parent)
	for _, s := range sessions {
		s.forget(sets)
		s.forget(customize)
	}
}

// Fail notes why there is no session, for the errors of questions.
func (p *Pool) Fail(err error) { p.update(func() { p.fault = err }) }

// FailSession notes why a session of the pool is not open. Another one's fault stays.
func (p *Pool) FailSession(s *Session, err error) {
	p.update(func() {
		if slices.Contains(p.sessions, s) {
			p.faults[s] = err
		}
	})
}

// why is the reason why no session is open. That a peer does not know the service counts before
// others being out of reach.
func (p *Pool) why() error {
	fault := p.fault
	for _, s := range p.sessions {
		if err := p.faults[s]; err != nil && (fault == nil || status.Code(err) == codes.Unimplemented) {
			fault = err
		}
	}
	return fault
}

// Unserved reports whether no session is open, and a peer that was reached does not know the
// service.
func (p *Pool) Unserved() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return status.Code(p.why()) == codes.Unimplemented && len(p.open()) == 0
}

func (p *Pool) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Len is how many sessions are open.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open())
}

func (p *Pool) open() []*Session {
	return slices.DeleteFunc(slices.Clone(p.sessions), func(s *Session) bool { return !s.Open() })
}

// pick is the session for a subject (rendezvous hashing), or nil and what to wait for.
func (p *Pool) pick(subject string) (*Session, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *Session
	var rank [2]uint64 // build, then hash
	for _, s := range p.open() {
		mine := [2]uint64{p.builds.rank(s), weight(subject, s.ID())}
		if best == nil || mine[0] > rank[0] || mine[0] == rank[0] && mine[1] > rank[1] {
			best, rank = s, mine
		}
	}
	p.builds.strayed = p.builds.strayed || best != nil && p.builds.answers != "" && best.Build() != p.builds.answers
	return best, p.changed, p.why()
}

func weight(subject, id string) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(subject) // it never fails
	_, _ = h.WriteString(id)
	return h.Sum64()
}

// errNone is what is known where no session was ever opened, and no attempt has failed yet.
var errNone = status.Error(codes.Unavailable, "no session is open")

// session waits for one, but not for long.
func (p *Pool) session(ctx context.Context, subject string) (*Session, error) {
	s, changed, fault := p.pick(subject)
	if s != nil {
		return s, nil
	}
	timer := p.clock.NewTimer(patience)
	defer timer.Stop()
	for {
		if status.Code(fault) == codes.Unimplemented { // waiting does not help
			return nil, fault
		}
		select {
		case <-changed:
		case <-timer.C():
			if fault == nil {
				fault = errNone
			}
			return nil, fault
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if s, changed, fault = p.pick(subject); s != nil {
			return s, nil
		}
	}
}

// Hook asks the pool's sessions under a name, for messages, with a timeout for each question.
type Hook struct {
	Pool    *Pool
	Name    string
	Timeout time.Duration
	// As names who answers, for hook.Answer.By; the session's build is added.
	As string
	// Otherwise is asked at once while there is no session; nil waits for one, for a while.
	Otherwise hook.Hook
}

var _ hook.Hook = Hook{}

// maxLosses is how many streams a question may see end while its answer is due. It may be the
// question that ends them.
const maxLosses = 3

// Ask puts a question to a session. If the session is lost before the answer it is put to
// another, some times: hooks are functions.
func (h Hook) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	callers := ctx
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	asked := question(q)
	asked.TraceContext = carrier(ctx)
	asked.Remaining = func() time.Duration { return time.Until(deadline) }
	var losses int
	var lost error
	for losses < maxLosses {
		if h.Otherwise != nil && h.Pool.Len() == 0 {
			return h.Otherwise.Ask(callers, q)
		}
		s, err := h.Pool.session(ctx, asked.Subject)
		if err != nil {
			return nil, h.failure(ctx, q, cmp.Or(lost, err))
		}
		outcome, err := s.ask(ctx, asked)
		switch {
		case err != nil:
			return nil, h.failure(ctx, q, err)
		case !outcome.Lost:
			hook.Hold(callers, func() { s.messages.Release(outcome.Reserved) })
			return h.read(ctx, q, outcome, s.Build())
		case outcome.Sent > 0: // else it has only waited for its turn
			losses++
			lost = s.lost()
		}
	}
	return nil, h.failure(ctx, q, lost)
}

// failure is the error of the port for a question that no stream has carried to an answer. A
// parent's context that ends is no fault of the hook. No failure of a stream is final for the
// parent, as a hook's own refusal is.
func (h Hook) failure(ctx context.Context, q *hook.Question, err error) error {
	var (
		said   *hook.Error
		broken *Broken
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &said):
		return said
	case errors.As(err, &broken):
		return &hook.Error{Kind: hook.Invalid, Hook: h.Name, Err: broken}
	}
	s := status.Convert(fromContext(err))
	failure := codec.Failure(h.Name, q, h.Timeout, s)
	switch failure.Kind {
	case hook.Rejected, hook.Throttled: // the stream was, not this parent
		failure.Kind = hook.Unreachable
	case hook.Failed:
		if !slices.Contains(refusals, s.Code()) {
			failure.Kind = hook.Unreachable
		}
	}
	return failure
}

// refusals are the codes by which a peer says, of every stream, that it will not have it.
var refusals = []codes.Code{codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied}

// fromContext gives the context's own errors their status codes.
func fromContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return err
}

// read turns an outcome into an answer.
func (h Hook) read(ctx context.Context, q *hook.Question, o session.Outcome, build string) (*hook.Answer, error) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		//nolint:gosec // sizes of messages
		span.SetAttributes(
			attribute.Int64("hookloop.hook.request_bytes", int64(o.Sent)),
			//nolint:gosec // as above
			attribute.Int64(
				"hookloop.hook.response_bytes",
				int64(o.Got),
			),
			attribute.Bool("hookloop.hook.snapshot", o.Snapshot),
		)
	}
	switch {
	case o.Fault != nil:
		return nil, &hook.Error{Kind: hook.Invalid, Hook: h.Name, Err: o.Fault}
	case o.Exhausted != nil:
		err := fmt.Errorf("the answer cannot be read: %w", o.Exhausted)
		return nil, &hook.Error{Kind: hook.Failed, Hook: h.Name, Reason: "MemoryBudget", Err: err}
	case o.Refused != nil:
		return nil, codec.Failure(h.Name, q, h.Timeout, refusal(o))
	}
	answer, err := codec.Answer(o.Response)
	if err != nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: h.Name, Err: err}
	}
	answer.AnsweredBy = strings.TrimSpace(h.As + " " + build)
	return answer, nil
}

// carrier is the trace context of a call.
func carrier(ctx context.Context) map[string]string {
	c := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, c)
	if len(c) == 0 {
		return nil
	}
	return c
}
