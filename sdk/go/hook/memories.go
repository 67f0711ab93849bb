package hook

import (
	"sync"

	"github.com/hookloop/hookloop/transports/session"
)

// maxMemories bounds the sessions that are remembered without a stream: an engine that restarts does not come back for them.
const maxMemories = 8

// memories are what a hook holds, by session id. One stream has each at a time.
type memories struct {
	mu   sync.Mutex // guards what follows
	idle []kept     // the one put back last at the end
	busy map[string]*session.Memory
}

type kept struct {
	id     string
	memory *session.Memory
}

// take gives a stream what was kept for its session, or an empty memory where there is nothing, or another stream still has it.
func (m *memories) take(id string) *session.Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.busy == nil {
		m.busy = map[string]*session.Memory{}
	}
	memory := session.NewMemory(0)
	for i, k := range m.idle {
		if k.id == id {
			memory = k.memory
			m.idle = append(m.idle[:i], m.idle[i+1:]...)
			break
		}
	}
	m.busy[id] = memory // of two streams with one id, the last one's is kept
	return memory
}

// give keeps a memory for the next stream, unless another stream has begun under its id meanwhile.
func (m *memories) give(id string, memory *session.Memory) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if memory == nil || m.busy[id] != memory {
		return
	}
	delete(m.busy, id)
	m.idle = append(m.idle, kept{id, memory})
	if n := len(m.idle); n > maxMemories {
		m.idle = m.idle[n-maxMemories:]
	}
}
