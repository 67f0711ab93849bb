package hook

import (
	"cmp"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/internal/transports/session"
)

// What is remembered of sessions without a stream: an engine that restarts does not come back for
// them.
const (
	maxIdle      = 64
	maxIdleBytes = 256 << 20
)

// memories are what a hook holds, by session id. One stream has each at a time.
type memories struct {
	mu   sync.Mutex // guards what follows
	idle []kept     // the one put back last at the end
	busy map[string]*exchange
}

type kept struct {
	id   string
	held *held
}

// held is what a hook holds of one session, over all its streams.
type held struct {
	memory *session.Memory
	slots  slots
}

func newHeld() *held {
	return &held{memory: session.NewMemory(0), slots: make(slots, session.DefaultCalls)}
}

// take gives a stream what was kept for its session; it is empty where there is nothing. A stream
// that still has it loses it: the engine has one at a time, and knows better which of them lives.
func (m *memories) take(id string, x *exchange) *held {
	found, before := m.begin(id, x)
	if before != nil {
		found = cmp.Or(before.surrender(), found)
	}
	if found == nil {
		found = newHeld()
	}
	return found
}

// begin notes which stream has a session, and finds what was kept for it, or the stream that had
// it.
func (m *memories) begin(id string, x *exchange) (found *held, before *exchange) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy == nil {
		m.busy = map[string]*exchange{}
	}
	before, m.busy[id] = m.busy[id], x
	if i := slices.IndexFunc(m.idle, func(k kept) bool { return k.id == id }); i >= 0 {
		found = m.idle[i].held
		m.idle = slices.Delete(m.idle, i, i+1)
	}
	return found, before
}

// give keeps what a stream held for the next, unless another stream has it by now.
func (m *memories) give(id string, x *exchange, left *held) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy[id] != x {
		return
	}
	delete(m.busy, id)
	m.idle = append(m.idle, kept{id, left})
	bytes := 0
	for _, k := range m.idle {
		bytes += k.held.memory.Bytes()
	}
	for len(m.idle) > maxIdle || bytes > maxIdleBytes {
		bytes -= m.idle[0].held.memory.Bytes()
		m.idle = slices.Delete(m.idle, 0, 1)
	}
}
