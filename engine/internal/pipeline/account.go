package pipeline

import "container/list"

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

// uses orders states by their last sync and adds up their bytes. The zero value has none.
type uses struct {
	// recent has the states (*keyState), the last used first, without those that are being synced.
	recent list.List
	// total is the sum of all sizes.
	total int64
}

// begin takes a state out of the order while its key is being synced.
func (u *uses) begin(s *keyState) {
	if s.place != nil {
		u.recent.Remove(s.place)
		s.place = nil
	}
}

// end puts a state at the front of the order, with its size.
func (u *uses) end(s *keyState) {
	u.resize(s)
	s.place = u.recent.PushFront(s)
}

func (u *uses) resize(s *keyState) {
	bytes := s.size()
	u.total += bytes - s.bytes
	s.bytes = bytes
}

func (u *uses) forget(s *keyState) {
	u.begin(s)
	u.total -= s.bytes
}

// unlimited is the Account of a process without a limit.
type unlimited struct{}

func (unlimited) Set(int64) {}
func (unlimited) Close()    {}
