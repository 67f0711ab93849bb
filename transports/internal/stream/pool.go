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
	"github.com/hookloop/hookloop/transports/codec"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// sessionTimeout limits how long a question waits for a session. This is long enough for a hook to
// restart, and short enough not to block workers while the hook is down.
const sessionTimeout = 2 * time.Second

// Pool holds the open sessions to one hook. Questions about the same parent, or the same part of
// it, go to the same session while it is open, because the hook keeps their objects there. If
// sessions report different builds, one build gets all questions. Use a [Hook] to ask.
type Pool struct {
	clock        clock.Clock
	buildChanged func()

	mu       sync.Mutex // guards the fields below
	sessions []*Session
	builds   *builds
	changed  chan struct{}      // closed and replaced at every change
	fault    error              // last failure outside any session
	faults   map[*Session]error // why each session that is not open failed
	watchers map[*watcher]struct{}
}

// NewPool returns an empty pool. It calls buildChanged when another build takes over, because
// answers may then differ. No lock is held during the call. buildChanged may be nil.
func NewPool(c clock.WithDelayedExecution, buildChanged func()) *Pool {
	return &Pool{
		clock:        c,
		buildChanged: buildChanged,
		builds:       newBuilds(c),
		changed:      make(chan struct{}),
		faults:       map[*Session]error{},
		watchers:     map[*watcher]struct{}{},
	}
}

// Add adds a session.
func (p *Pool) Add(s *Session) { p.update(func() { p.sessions = append(p.sessions, s) }) }

// Remove removes a session.
func (p *Pool) Remove(s *Session) {
	p.update(func() {
		p.sessions = slices.DeleteFunc(p.sessions, func(other *Session) bool { return other == s })
		delete(p.faults, s)
	})
}

// Forgets returns a function that drops what all sessions remember about a parent of a controller,
// or about one of its parts.
func (p *Pool) Forgets(s hook.Config) func(parent types.UID, part string) {
	return func(parent types.UID, part string) {
		p.mu.Lock()
		sessions := slices.Clone(p.sessions)
		p.mu.Unlock()
		names := subjectsOf(s.ControllerUID, parent)
		for _, session := range sessions {
			switch {
			case part != "":
				session.forget(names.part(part))
			case s.Kind.Descriptor().ByInput:
				session.forgetAll(names.part(""))
				session.forget(names.customize())
			default:
				session.forget(names.whole())
				session.forget(names.customize())
			}
		}
	}
}

// Fail notes why there are no sessions, for use in messages.
func (p *Pool) Fail(err error) { p.update(func() { p.fault = err }) }

// FailSession notes why a session in the pool is not open. What was noted for other sessions stays.
func (p *Pool) FailSession(s *Session, err error) {
	p.update(func() {
		if slices.Contains(p.sessions, s) {
			p.faults[s] = err
		}
	})
}

// reason says why no session is open. UNIMPLEMENTED is preferred to an unreachable peer.
func (p *Pool) reason() error {
	fault := p.fault
	for _, s := range p.sessions {
		if err := p.faults[s]; err != nil && (fault == nil || status.Code(err) == codes.Unimplemented) {
			fault = err
		}
	}
	return fault
}

// Unimplemented reports whether no session is open because a peer does not implement the service.
func (p *Pool) Unimplemented() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return status.Code(p.reason()) == codes.Unimplemented && len(p.open()) == 0
}

// Probe returns nil if a session is open, and otherwise the reason why none is.
func (p *Pool) Probe(context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.open()) > 0 {
		return nil
	}
	if err := p.reason(); err != nil {
		return err
	}
	return errNoSession
}

func (p *Pool) update(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Len returns how many sessions are open.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open())
}

func (p *Pool) open() []*Session {
	return slices.DeleteFunc(slices.Clone(p.sessions), func(s *Session) bool { return !s.Open() })
}

// pick chooses the session for a subject by rendezvous hashing. If no session is open, it returns a
// channel that is closed at the next change.
func (p *Pool) pick(subject string) (*Session, <-chan struct{}, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var best *Session
	var rank [2]uint64 // build, then hash
	for _, s := range p.open() {
		r := [2]uint64{p.builds.rank(s), weight(subject, s.ID())}
		if best == nil || r[0] > rank[0] || r[0] == rank[0] && r[1] > rank[1] {
			best = s
			rank = r
		}
	}
	p.builds.strayed = p.builds.strayed || best != nil && p.builds.active != "" && best.Build() != p.builds.active
	return best, p.changed, p.reason()
}

func weight(subject, id string) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.WriteString(subject) // never fails
	_, _ = h.WriteString(id)
	return h.Sum64()
}

// errNoSession is returned if no session was opened yet and no attempt has failed.
var errNoSession = status.Error(codes.Unavailable, "no session is open")

// session returns the session for a subject. If none is open, it waits for up to sessionTimeout.
func (p *Pool) session(ctx context.Context, subject string) (*Session, error) {
	s, changed, fault := p.pick(subject)
	if s != nil {
		return s, nil
	}
	timer := p.clock.NewTimer(sessionTimeout)
	defer timer.Stop()
	for {
		if status.Code(fault) == codes.Unimplemented { // waiting would not help
			return nil, fault
		}
		select {
		case <-changed:
		case <-timer.C():
			if fault == nil {
				fault = errNoSession
			}
			return nil, fault
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s, changed, fault = p.pick(subject)
		if s != nil {
			return s, nil
		}
	}
}

// Hook asks the sessions in a pool. Name is used in messages, and Timeout limits each question.
type Hook struct {
	Pool *Pool
	Name string
	// Hook selects one of several hooks that a server serves. It is empty if there is only one.
	Hook    string
	Timeout time.Duration
	// AnsweredBy begins hook.Answer.AnsweredBy; the session's build is appended.
	AnsweredBy string
	// Fallback answers while no session is open. If it is nil, questions wait for a session for up
	// to sessionTimeout.
	Fallback hook.Hook
}

var _ hook.Hook = Hook{}

// maxLosses limits how many streams may end during one question, because the question itself may be
// the cause.
const maxLosses = 3

// Ask sends a question to a session. If the session is lost before the answer, Ask asks another
// one, since hooks are idempotent.
func (h Hook) Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error) {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	deadline, _ := ctx.Deadline()
	meta := codec.StreamMeta(h.Hook)
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.SetAttributes(attribute.String("hookloop.hook.request_id", meta.GetRequestId()))
	}
	call := question(q, meta)
	call.TraceContext = traceContext(ctx)
	call.Remaining = func() time.Duration { return time.Until(deadline) }
	var losses int
	var lost error
	for losses < maxLosses {
		if h.Fallback != nil && h.Pool.Len() == 0 {
			return h.Fallback.Ask(callerCtx, q)
		}
		s, err := h.Pool.session(ctx, call.Subject)
		if err != nil {
			return nil, h.failure(ctx, q, cmp.Or(lost, err))
		}
		outcome, err := s.ask(ctx, call)
		switch {
		case err != nil:
			return nil, h.failure(ctx, q, err)
		case !outcome.Lost:
			hook.Hold(callerCtx, func() { s.messages.Release(outcome.Reserved) })
			return h.read(ctx, q, outcome, s.Build())
		case outcome.Sent > 0: // otherwise the question was only queued
			losses++
			lost = s.endCause()
		}
	}
	return nil, h.failure(ctx, q, lost)
}

// failure returns the error for a question that was not answered. When the caller's context ends,
// this is not the hook's fault. A hook may reject a parent for good, but a stream that fails never
// does.
func (h Hook) failure(ctx context.Context, q *hook.Question, err error) error {
	var (
		portErr *hook.Error
		broken  *Broken
	)
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &portErr):
		return portErr
	case errors.As(err, &broken):
		return &hook.Error{Kind: hook.Invalid, Hook: h.Name, Err: broken}
	}
	s := status.Convert(fromContext(err))
	failure := codec.Failure(h.Name, q, h.Timeout, s)
	switch failure.Kind {
	case hook.Rejected, hook.Throttled: // the stream was rejected, not this parent
		failure.Kind = hook.Unreachable
	case hook.Failed:
		if !slices.Contains(rejectionCodes, s.Code()) {
			failure.Kind = hook.Unreachable
		}
	}
	return failure
}

// rejectionCodes lists codes of peers that reject every stream.
var rejectionCodes = []codes.Code{codes.Unimplemented, codes.Unauthenticated, codes.PermissionDenied}

// fromContext turns errors of a context into statuses.
func fromContext(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return status.FromContextError(err).Err()
	}
	return err
}

// read converts an outcome into an answer.
func (h Hook) read(ctx context.Context, q *hook.Question, o session.Outcome, build string) (*hook.Answer, error) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		//nolint:gosec // sizes of messages
		span.SetAttributes(
			attribute.Int64("hookloop.hook.request_bytes", int64(o.Sent)),
			//nolint:gosec // as above
			attribute.Int64("hookloop.hook.response_bytes", int64(o.Got)),
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
		return nil, codec.Failure(h.Name, q, h.Timeout, refusedStatus(o))
	}
	answer, err := codec.AnswerAgain(o.Response, o.Derived)
	if err != nil {
		return nil, &hook.Error{Kind: hook.Invalid, Hook: h.Name, Err: err}
	}
	answer.AnsweredBy = strings.TrimSpace(h.AnsweredBy + " " + build)
	return answer, nil
}

// refusedStatus returns the status of a call that the hook refused.
func refusedStatus(o session.Outcome) *status.Status {
	return status.FromProto(
		&statuspb.Status{Code: o.Refused.GetCode(), Message: o.Refused.GetMessage(), Details: o.Refused.GetDetails()})
}

// traceContext returns the trace context of a call.
func traceContext(ctx context.Context) map[string]string {
	c := propagation.MapCarrier{}
	otel.GetTextMapPropagator().Inject(ctx, c)
	if len(c) == 0 {
		return nil
	}
	return c
}
