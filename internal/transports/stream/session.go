package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/object"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/utils/clock"
)

// Conn is an open stream, whichever side opened it. Both methods may be called at the same time,
// each by one goroutine.
type Conn interface {
	Send(*streamv1.EngineMessage) error
	Recv() (*streamv1.HookMessage, error)
}

// Settings say what a session needs.
type Settings struct {
	// ID is the session's random name.
	ID string
	// Build names the engine's build.
	Build string
	Clock clock.WithDelayedExecution
	// Metrics may be nil.
	Metrics *Metrics
	// Memory is the process's; nil is without limit.
	Memory *budget.Budget
	// Changed is called when questions may be asked, or no longer. It may be nil.
	Changed func()
	// Trigger asks for syncs. It may be nil: then triggers are refused.
	Trigger func(*streamv1.Trigger) (int, error)
}

const (
	// overdue is how long the answer to a cancelled call may take: a hook that does not give back
	// what a call took is of no use.
	overdue = 30 * time.Second
	// greeting is how long a hook's Welcome may take.
	greeting = 10 * time.Second
	// goodbye is how long the last messages of a stream may take.
	goodbye = time.Second
	// maxUnread bounds the answers to triggers that wait for a hook to read them.
	maxUnread = 1000
	// maxBuildBytes bounds the name of a hook's build, which outlives the stream.
	maxBuildBytes = 256
)

// ErrDrained is the cause of a stream's end that a side asked for, when all calls have their
// answers.
var ErrDrained = status.Error(codes.Unavailable, "the stream has ended in order: a side wants no more questions")

// Broken is the cause of a stream's end where the hook did what the protocol does not allow. Its
// status is INVALID_ARGUMENT.
type Broken struct{ err error }

func (e *Broken) Error() string { return e.err.Error() }

// Unwrap gives what the hook did, in most cases a *session.ProtocolError.
func (e *Broken) Unwrap() error { return e.err }

// GRPCStatus is what the hook reads.
func (e *Broken) GRPCStatus() *status.Status { return status.New(codes.InvalidArgument, e.Error()) }

// errLeft is the cause of a stream's end that the hook made without a word.
var errLeft = status.Error(codes.Unavailable, "the hook has ended the stream")

// Session is the engine's side of a session, over one stream after the other.
type Session struct {
	settings Settings
	held     *budget.Account // of the budget's sessions
	messages *budget.Share   // for what is decoded
	// What many ask for on their way to a session is read without the lock, under which messages of
	// any size are understood.
	open  atomic.Bool
	build atomic.Pointer[string] // nil before the first Welcome
	// methods are those that the hook has functions for; nil if it names none.
	methods atomic.Pointer[[]string]

	mu      sync.Mutex // guards the fields below
	engine  *session.Engine[*object.Object]
	pending map[uint64]chan session.Outcome
	run     *run  // the stream of now; nil without one
	ended   error // why the stream before it ended
	counted session.Counts
	closed  bool // no stream follows
}

// run is one stream of a session.
type run struct {
	cancel context.CancelCauseFunc
	// wake holds something when there may be messages to send.
	wake chan struct{}
	// last is closed when nothing is sent any more.
	last chan struct{}
	// ending reports that the sender ends when it has sent what there is.
	ending bool
}

// New makes a session without a stream.
func New(s Settings) *Session {
	out := &Session{settings: s, pending: map[uint64]chan session.Outcome{}, messages: s.Memory.Share(budget.Decoding)}
	out.engine = session.NewEngine(session.EngineSettings[*object.Object]{
		SessionID:    s.ID,
		Build:        s.Build,
		Encode:       codec.Object,
		MessageBytes: codec.MaxMessageBytes,
		Reserver:     out.messages,
	})
	out.held = s.Memory.Share(budget.Sessions).Join(out.shrink)
	return out
}

// ID is the session's name.
func (s *Session) ID() string { return s.settings.ID }

// Build is the hook's build, as it said last. It waits for nothing.
func (s *Session) Build() string {
	if build := s.build.Load(); build != nil {
		return *build
	}
	return ""
}

// Messages is the memory for messages of the hook.
func (s *Session) Messages() *budget.Share { return s.messages }

// Welcomed reports whether a hook has ever said Welcome, so that the session is worth keeping for
// it.
func (s *Session) Welcomed() bool { return s.build.Load() != nil }

// Serve has a session without a stream tell others of its next ones.
func (s *Session) Serve(changed func(), trigger func(*streamv1.Trigger) (int, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings.Changed, s.settings.Trigger = changed, trigger
}

// Open reports whether questions may be asked. It waits for nothing.
func (s *Session) Open() bool { return s.open.Load() }

// Busy reports whether the hook owes answers.
func (s *Session) Busy() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.engine.Load() > 0
}

// Run uses a stream until it ends, and returns why: ctx's cause, the peer's status, or what the
// peer did wrong (INVALID_ARGUMENT). The caller then ends the stream itself. Only one stream may
// run at a time.
func (s *Session) Run(ctx context.Context, conn Conn) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := &run{cancel: cancel, wake: make(chan struct{}, 1), last: make(chan struct{})}
	s.do(func() {
		s.run = r
		s.engine.Connect()
	})
	go s.receive(r, conn)
	go s.send(ctx, r, conn)
	silent := s.settings.Clock.AfterFunc(greeting, func() { s.greeted(r) })
	defer silent.Stop()
	<-ctx.Done()
	err := context.Cause(ctx)
	s.do(func() {
		s.engine.Disconnect()
		s.run, s.ended = nil, err
	})
	s.changed()
	return err
}

// greeted ends a stream on which the hook has not said Welcome.
func (s *Session) greeted(r *run) {
	s.mu.Lock()
	silent := s.run == r && !s.engine.Welcomed()
	s.mu.Unlock()
	if silent {
		s.end(r, status.Errorf(codes.DeadlineExceeded, "the hook has not said Welcome within %s", greeting))
	}
}

// Drain asks nothing more on the stream of now, and ends it when all calls have their answers.
// Questions that wait for their turn are lost before they are asked. It reports whether there is an
// open stream.
func (s *Session) Drain() (open bool) {
	s.do(func() {
		open = s.engine.Welcomed()
		s.engine.Drain()
	})
	s.changed()
	return open
}

// forget drops a subject on both sides.
func (s *Session) forget(subject string) {
	s.do(func() { s.engine.Forget(subject) })
}

// do changes the state, tells those who wait what became of their questions, and has messages sent.
func (s *Session) do(change func()) {
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
	s.account()
	r, drained := s.run, s.engine.Drained()
	s.mu.Unlock()
	defer s.settings.Memory.Share(budget.Sessions).Balance()
	if r == nil {
		return
	}
	if drained {
		r.cancel(ErrDrained)
	}
	select {
	case r.wake <- struct{}{}:
	default: // it will be looked at anyway
	}
}

func (s *Session) count() {
	if s.settings.Metrics != nil {
		now := s.engine.Counts()
		s.settings.Metrics.add(s.counted, now)
		s.counted = now
	}
}

func (s *Session) changed() {
	s.mu.Lock()
	tell := s.settings.Changed
	s.mu.Unlock()
	if tell != nil {
		tell()
	}
}

// lost is why the last stream ended.
func (s *Session) lost() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ended
}

// ask puts one question. Lost is the outcome where the stream cannot be asked, or ended before the
// answer.
func (s *Session) ask(ctx context.Context, q session.Question[*object.Object]) (session.Outcome, error) {
	answered := make(chan session.Outcome, 1)
	var ticket uint64
	s.do(func() {
		if !s.engine.Open() {
			answered <- session.Outcome{Lost: true}
			return
		}
		ticket = s.engine.Ask(q)
		s.pending[ticket] = answered
	})
	select {
	case o := <-answered:
		return o, nil
	case <-ctx.Done():
		s.cancel(ticket)
		select {
		case late := <-answered: // nobody sends any more
			s.messages.Release(late.Reserved)
		default:
		}
		return session.Outcome{}, ctx.Err()
	}
}

// cancel gives a question up. A hook that does not answer it within a time has its stream ended.
func (s *Session) cancel(ticket uint64) {
	var due bool
	var r *run
	s.do(func() {
		delete(s.pending, ticket)
		due, r = s.engine.Cancel(ticket), s.run
	})
	if !due {
		return
	}
	s.settings.Clock.AfterFunc(overdue, func() {
		s.mu.Lock()
		due := s.run == r && s.engine.Due(ticket)
		s.mu.Unlock()
		if due {
			s.end(r, status.Errorf(codes.DeadlineExceeded, "a cancelled call has no answer for %s, not even CANCELLED", overdue))
		}
	})
}
