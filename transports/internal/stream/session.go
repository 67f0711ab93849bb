package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/protocol/features"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/codec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// Conn is an open stream. Either side may have opened it. One goroutine may call Send while another
// calls Recv.
type Conn interface {
	Send(*streamv1.EngineMessage) error
	Recv() (*streamv1.HookMessage, error)
}

// Config configures a [Session].
type Config struct {
	// ID should be random; it names the session.
	ID string
	// Build identifies the engine's build.
	Build string
	Clock clock.WithDelayedExecution
	// Metrics may be nil.
	Metrics *Metrics
	// Memory is the budget for the whole process. If it is nil, memory is not limited.
	Memory *budget.Budget
	// Changed is called when the session begins or ceases to accept questions. It may be nil.
	Changed func()
	// Trigger is called when the hook asks for syncs. If it is nil, triggers are rejected.
	Trigger func(*streamv1.Trigger) (int, error)
}

const (
	// cancelTimeout limits how long we wait for the answer to a cancelled call. Without it, a hook
	// that never answers would keep a place in the window forever.
	cancelTimeout = 30 * time.Second
	// welcomeTimeout limits how long we wait for a hook's Welcome.
	welcomeTimeout = 10 * time.Second
	// goAwayTimeout limits how long the last messages may take to be sent.
	goAwayTimeout = time.Second
	// maxUnread and maxUnreadBytes limit answers to triggers that a hook has not read yet.
	maxUnread      = 1000
	maxUnreadBytes = 256 << 10
	// maxBuildBytes limits a hook's build ID, which is kept after the stream ends.
	maxBuildBytes = 256
)

// ErrDrained is returned by [Session.Run] when a drained stream ends after its last answer.
var ErrDrained = status.Error(codes.Unavailable, "the stream has ended in order: a side wants no more questions")

// Broken is returned by [Session.Run] if a hook violated the protocol. Its status is
// INVALID_ARGUMENT.
type Broken struct{ err error }

func (e *Broken) Error() string { return e.err.Error() }

// Unwrap returns the violation, usually a *session.ProtocolError.
func (e *Broken) Unwrap() error { return e.err }

// GRPCStatus returns the status to send to the hook.
func (e *Broken) GRPCStatus() *status.Status { return status.New(codes.InvalidArgument, e.Error()) }

// errLeft is the cause when the hook closes the stream.
var errLeft = status.Error(codes.Unavailable, "the hook has ended the stream")

// Session is the engine's side of a session with a hook. It uses one stream after the other; call
// [Session.Run] for each.
type Session struct {
	settings Config
	account  *budget.Account // in the budget's share for sessions
	messages *budget.Share   // for decoded messages
	// These fields are read without the lock, because the lock is held while messages of any size
	// are decoded.
	open  atomic.Bool
	build atomic.Pointer[string] // nil before the first Welcome
	// methods lists the contract's methods that the hook implements. It is nil if the hook does not
	// list them.
	methods atomic.Pointer[[]string]

	mu       sync.Mutex // guards the fields below
	engine   *session.Engine[*object.Object]
	pending  map[uint64]chan session.Outcome
	run      *run  // current stream; may be nil
	ended    error // why the previous stream ended
	reported session.Counts
	closed   bool // no other stream will follow
}

// run is one stream that a session uses.
type run struct {
	cancel context.CancelCauseFunc
	// wake has a buffer of 1. Send to it when there may be messages to send, or when the sender
	// should end.
	wake chan struct{}
	// sent is closed after the last message was sent.
	sent chan struct{}
	// ending tells the sender to stop after the queued messages.
	ending bool
}

// New returns a session that has no stream yet.
func New(s Config) *Session {
	out := &Session{settings: s, pending: map[uint64]chan session.Outcome{}, messages: s.Memory.Share(budget.Decoding)}
	out.engine = session.NewEngine(session.EngineConfig[*object.Object]{
		SessionID:    s.ID,
		Build:        s.Build,
		Features:     features.All(),
		Encode:       codec.Object,
		MessageBytes: codec.MaxMessageBytes,
		Reserver:     out.messages,
	})
	out.account = s.Memory.Share(budget.Sessions).Join(out.shrink)
	return out
}

// ID returns the session's ID.
func (s *Session) ID() string { return s.settings.ID }

// Build returns the build that the hook reported last. It does not block.
func (s *Session) Build() string {
	if build := s.build.Load(); build != nil {
		return *build
	}
	return ""
}

// Messages returns the share of memory for messages from the hook.
func (s *Session) Messages() *budget.Share { return s.messages }

// Welcomed reports whether a hook has completed the handshake. Only then is the session worth
// keeping.
func (s *Session) Welcomed() bool { return s.build.Load() != nil }

// SetHandlers sets the callbacks. The session must not have a stream.
func (s *Session) SetHandlers(changed func(), trigger func(*streamv1.Trigger) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings.Changed = changed
	s.settings.Trigger = trigger
}

// Open reports whether the session accepts questions. It does not block.
func (s *Session) Open() bool { return s.open.Load() }

// Busy reports whether calls are waiting for answers.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Load() > 0
}

// Run uses a stream until it ends and returns the cause: ctx's cause, the peer's status, or
// INVALID_ARGUMENT if the peer violated the protocol. The caller must then close the stream. Only
// one stream may run at a time.
func (s *Session) Run(ctx context.Context, conn Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{cancel: cancel, wake: make(chan struct{}, 1), sent: make(chan struct{})}
	s.update(func() {
		s.run = r
		s.engine.Connect()
	})
	go s.receive(r, conn)
	go s.send(ctx, r, conn)
	silent := s.settings.Clock.AfterFunc(welcomeTimeout, func() { s.checkWelcome(r) })
	defer silent.Stop()
	<-ctx.Done()
	err := context.Cause(ctx)
	s.update(func() {
		s.engine.Disconnect()
		s.run = nil
		s.ended = err
	})
	s.changed()
	return err
}

// checkWelcome ends a stream if no Welcome arrives in time.
func (s *Session) checkWelcome(r *run) {
	s.mu.Lock()
	silent := s.run == r && !s.engine.Welcomed()
	s.mu.Unlock()
	if silent {
		s.end(r, status.Errorf(codes.DeadlineExceeded, "the hook has not said Welcome within %s", welcomeTimeout))
	}
}

// Drain stops sending questions on the current stream, and ends it after the last answer. Questions
// that are still queued are lost. Drain reports whether a stream is open.
func (s *Session) Drain() (open bool) {
	s.update(func() {
		open = s.engine.Welcomed()
		s.engine.Drain()
	})
	s.changed()
	return open
}

// forget drops a subject's state on both sides.
func (s *Session) forget(subject string) {
	s.update(func() { s.engine.Forget(subject) })
}

// forgetAll drops the state of all subjects with a prefix on both sides.
func (s *Session) forgetAll(prefix string) {
	s.update(func() { s.engine.ForgetAll(prefix) })
}

// update runs a change under the lock, delivers outcomes, and wakes the sender if there is
// something to do.
func (s *Session) update(change func()) {
	s.mu.Lock()
	change()
	s.open.Store(s.engine.Open())
	for _, o := range s.engine.Outcomes() {
		waiting := s.pending[o.CallID]
		if waiting == nil {
			s.messages.Release(o.Reserved)
			continue
		}
		waiting <- o
		delete(s.pending, o.CallID)
	}
	s.count()
	s.updateAccount()
	r := s.run
	drained := s.engine.Drained()
	due := s.engine.Unsent() > 0 || r != nil && r.ending
	s.mu.Unlock()
	defer s.settings.Memory.Share(budget.Sessions).Balance()
	if r == nil {
		return
	}
	if drained {
		r.cancel(ErrDrained)
	}
	if !due {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default: // the sender is awake already
	}
}

func (s *Session) count() {
	if s.settings.Metrics != nil {
		now := s.engine.Counts()
		s.settings.Metrics.add(s.reported, now)
		s.reported = now
	}
}

func (s *Session) changed() {
	s.mu.Lock()
	changed := s.settings.Changed
	s.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// endCause returns why the last stream ended.
func (s *Session) endCause() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// ask sends a question. If no stream is open, or if the stream ends before the answer, the outcome
// is Lost.
func (s *Session) ask(ctx context.Context, q session.Question[*object.Object]) (session.Outcome, error) {
	answered := make(chan session.Outcome, 1)
	var callID uint64
	s.update(func() {
		if !s.engine.Open() {
			answered <- session.Outcome{Lost: true}
			return
		}
		callID = s.engine.Ask(q)
		s.pending[callID] = answered
	})
	select {
	case o := <-answered:
		return o, nil
	case <-ctx.Done():
		s.cancel(callID)
		select {
		case late := <-answered: // no other outcome will follow
			s.messages.Release(late.Reserved)
		default:
		}
		return session.Outcome{}, ctx.Err()
	}
}

// cancel cancels a call. If the hook does not answer within cancelTimeout, the stream ends.
func (s *Session) cancel(callID uint64) {
	var due bool
	var r *run
	s.update(func() {
		delete(s.pending, callID)
		due = s.engine.Cancel(callID)
		r = s.run
	})
	if !due {
		return
	}
	s.settings.Clock.AfterFunc(cancelTimeout, func() {
		s.mu.Lock()
		due := s.run == r && s.engine.Due(callID)
		s.mu.Unlock()
		if due {
			s.end(r, status.Errorf(codes.DeadlineExceeded,
				"a cancelled call has no answer for %s, not even CANCELLED", cancelTimeout))
		}
	})
}
