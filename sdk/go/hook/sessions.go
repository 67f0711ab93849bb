package hook

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/internal/protocol/session"
)

// maxIdle and maxIdleBytes limit the sessions to keep without a stream. An engine that restarts
// opens new sessions and never returns to the old ones.
const (
	maxIdle      = 64
	maxIdleBytes = 256 << 20
)

// sessions keeps the state of each session. At most one stream uses a session at a time.
type sessions struct {
	mu   sync.Mutex    // guards the fields below
	idle []idleSession // the most recent is last
	busy map[string]*exchange
	// closed is set when no session should be kept any longer.
	closed bool
}

// idleSession is a session that no stream uses.
type idleSession struct {
	id    string
	state *sessionState
}

// sessionState is what a session remembers. It outlives streams.
type sessionState struct {
	memory *session.State
	limit  limiter
	cache  *cacheMeter
	// bytes and subjects were last added to cache for this session.
	bytes, subjects int
}

// meter updates the cache statistics.
func (s *sessionState) meter() { s.record(s.memory.Bytes(), s.memory.Len()) }

// drop removes the state from the cache statistics.
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

// take returns the state for a stream that opens a session. It returns a new state if the session
// is unknown or has no ID. If another stream still uses the session, take ends it: the engine uses
// one stream at a time, and knows which one works.
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

// begin assigns the session to a stream. It returns the idle state, or the stream that used the
// session until now.
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

// give keeps the state after a stream ends, unless another stream already uses the session.
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

// close drops idle sessions now, and the others when their streams end.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, k := range s.idle {
		k.state.drop()
	}
	s.idle = nil
}
