package hook

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/internal/protocol/session"
)

// Limits of the idle sessions that are kept: an engine that restarts does not resume its old ones.
const (
	maxIdle      = 64
	maxIdleBytes = 256 << 20
)

// sessions has the state of all sessions, by id. At most one stream uses a session at a time.
type sessions struct {
	mu   sync.Mutex    // guards the fields below
	idle []idleSession // the latest at the end
	busy map[string]*exchange
	// closed reports that no session is kept any more.
	closed bool
}

// idleSession is a session without a stream.
type idleSession struct {
	id    string
	state *sessionState
}

// sessionState is the state of one session, which outlives its streams.
type sessionState struct {
	memory *session.State
	limit  limiter
	cache  *cacheMeter
	// bytes and subjects are the metered size of memory.
	bytes, subjects int
}

// meter records the present size.
func (s *sessionState) meter() { s.record(s.memory.Bytes(), s.memory.Len()) }

// drop records that nothing uses the state any more.
func (s *sessionState) drop() { s.record(0, 0) }

func (s *sessionState) record(bytes, subjects int) {
	if bytes != s.bytes || subjects != s.subjects {
		s.cache.add(bytes-s.bytes, subjects-s.subjects)
		s.bytes = bytes
		s.subjects = subjects
	}
}

func newSessionState() *sessionState {
	return &sessionState{
		memory: session.NewState(0), limit: make(limiter, session.DefaultCalls), cache: &sessionCaches,
	}
}

// take returns the state of a session, for a stream that opens it; it is new if none exists. A
// stream that still uses the session is ended: the engine has one stream at a time, and knows which
// one is alive. The state of a session without an ID is not kept.
func (s *sessions) take(id string, x *exchange) *sessionState {
	if id == "" {
		return newSessionState()
	}
	found, before := s.begin(id, x)
	if before != nil {
		found = cmp.Or(before.surrender(), found)
	}
	if found == nil {
		found = newSessionState()
	}
	return found
}

// begin records the stream of a session, and returns the idle state, or the stream that used it
// before.
func (s *sessions) begin(id string, x *exchange) (found *sessionState, before *exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy == nil {
		s.busy = map[string]*exchange{}
	}
	before = s.busy[id]
	s.busy[id] = x
	if i := slices.IndexFunc(s.idle, func(k idleSession) bool { return k.id == id }); i >= 0 {
		found = s.idle[i].state
		s.idle = slices.Delete(s.idle, i, i+1)
	}
	return found, before
}

// give keeps the state of a stream that has ended, unless another stream uses the session now.
func (s *sessions) give(id string, x *exchange, left *sessionState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[id] != x {
		left.drop()
		return
	}
	delete(s.busy, id)
	if s.closed {
		left.drop()
		return
	}
	s.idle = append(s.idle, idleSession{id, left})
	bytes := 0
	for _, k := range s.idle {
		bytes += k.state.memory.Bytes()
	}
	for len(s.idle) > maxIdle || bytes > maxIdleBytes {
		bytes -= s.idle[0].state.memory.Bytes()
		s.idle[0].state.drop()
		s.idle = slices.Delete(s.idle, 0, 1)
	}
}

// close drops the idle sessions, and each other one when its stream ends.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, k := range s.idle {
		k.state.drop()
	}
	s.idle = nil
}
