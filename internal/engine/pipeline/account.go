package pipeline

import (
	"container/list"

	"github.com/hookloop/hookloop/engine/hook"
)

// Account is a pipeline's share of the memory of the process.
type Account interface {
	// Set reports how many bytes are held. It may make other holders shrink, or the caller.
	Set(bytes int64)
	// Close ends the account.
	Close()
}

// OpenAccount opens an account. The function shrink must drop the states that were used longest ago
// until at most limit bytes are held, as far as possible, and call Set. It is called from any
// goroutine.
type OpenAccount func(shrink func(limit int64)) Account

// uses orders keys by their last sync and adds up the bytes of their states.
type uses struct {
	// recent has the keys, the last used first; entries are its elements by key. A key that is
	// being synced is in neither.
	recent  list.List
	entries map[hook.Key]*list.Element
	// bytes are the sizes by key and total is their sum. The size of a key that is being synced is
	// that from before its sync.
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

// end puts a key at the front of the order, with its size in bytes.
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

// unlimited is the Account of a process without a limit.
type unlimited struct{}

func (unlimited) Set(int64) {}
func (unlimited) Close()    {}
