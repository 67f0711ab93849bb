package pipeline

import (
	"container/list"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/plan"
)

// Account is what the pipelines of a process have of its memory.
type Account interface {
	// Set notes how many bytes are held. It may have other holders, or the caller, shrink.
	Set(bytes int64)
	// Close ends the account.
	Close()
}

// OpenAccount opens an account. shrink must drop what was used longest ago until at most limit
// bytes are held, as far as that can be dropped, and call Set; it is called from any goroutine.
type OpenAccount func(shrink func(limit int64)) Account

// uses keeps account of what is remembered of parents, in the order in which they were last synced.
type uses struct {
	// recent has the keys, the last used first; entries are its elements by key. A key that is
	// being synced is in neither.
	recent  list.List
	entries map[hook.Key]*list.Element
	// bytes are the sum of all parents' bytes, those under way as they were before.
	bytes map[hook.Key]int64
	total int64
}

func newUses() uses {
	return uses{entries: map[hook.Key]*list.Element{}, bytes: map[hook.Key]int64{}}
}

// begin takes a key out of the order while it is being synced.
func (u *uses) begin(key hook.Key) {
	if e := u.entries[key]; e != nil {
		u.recent.Remove(e)
		delete(u.entries, key)
	}
}

// end puts a key at the front of the order, with its bytes.
func (u *uses) end(key hook.Key, bytes int64) {
	u.resize(key, bytes)
	u.entries[key] = u.recent.PushFront(key)
}

func (u *uses) resize(key hook.Key, bytes int64) {
	u.total += bytes - u.bytes[key]
	u.bytes[key] = bytes
}

func (u *uses) forget(key hook.Key) {
	u.begin(key)
	u.total -= u.bytes[key]
	delete(u.bytes, key)
}

// size is about how much memory is used for one parent.
func (m *parentState) size() int64 {
	warnings := 0 // of at most maxWarned children
	for child, text := range m.warnings {
		warnings += len(child) + len(text)
	}
	return int64(m.previous.Bytes() + m.converged.Bytes() + len(m.statusAnswer) + warnings)
}

// release ends a sync's use of what is remembered.
func (m *states) release(key hook.Key) {
	m.mu.Lock()
	if r := m.parents[key]; r != nil {
		m.uses.end(key, r.size())
	}
	total := m.uses.total
	m.mu.Unlock()
	m.account.Set(total)
}

// shrink forgets the last answers of the parents that were synced longest ago. What was found of
// their children is kept: without it values that the server alters would be written once more.
func (m *states) shrink(limit int64) {
	m.mu.Lock()
	for e := m.uses.recent.Back(); e != nil && m.uses.total > limit; e = e.Prev() {
		key := e.Value.(hook.Key)
		r := m.parents[key]
		r.previous = plan.Previous{}
		m.uses.resize(key, r.size())
	}
	total := m.uses.total
	m.mu.Unlock()
	m.account.Set(total)
}

// unlimited is the Account of a process without a limit.
type unlimited struct{}

func (unlimited) Set(int64) {}
func (unlimited) Close()    {}
