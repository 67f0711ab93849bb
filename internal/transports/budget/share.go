package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// Share is the memory of one part. It is taken for a time (Acquire, Release), or held by accounts
// that can be told to shrink (Join).
type Share struct {
	budget *Budget
	part   Part
	size   int64
	room   *semaphore.Weighted

	taken            atomic.Int64 // by Acquire; at most size
	held             atomic.Int64 // by accounts
	refused, evicted atomic.Uint64
	balancing        sync.Mutex // held by the one caller that balances

	mu       sync.Mutex // guards accounts
	accounts []*Account
}

func newShare(b *Budget, part Part, size int64) *Share {
	return &Share{budget: b, part: part, size: size, room: semaphore.NewWeighted(size)}
}

// Limit is how much the part may have now.
func (s *Share) Limit() int64 {
	if s == nil {
		return 1<<63 - 1
	}
	if !slices.Contains(evictable, s.part) {
		return s.size
	}
	var all int64
	for _, part := range evictable {
		all += s.budget.shares[part].size
	}
	return max(s.size/4, s.size-int64(float64(s.budget.excess())*float64(s.size)/float64(all)))
}

// Acquire takes n bytes. It waits for others to release theirs until ctx ends; then, or where n is
// more than there ever is, it returns an *ExhaustedError. Who holds some already must not wait for
// more: use TryAcquire.
func (s *Share) Acquire(ctx context.Context, n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	if n > s.size {
		return s.refuse(n)
	}
	if err := s.room.Acquire(ctx, n); err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return s.refuse(n)
	}
	s.taken.Add(n)
	return nil
}

// TryAcquire takes n bytes, or returns an *ExhaustedError at once.
func (s *Share) TryAcquire(n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	if !s.room.TryAcquire(n) {
		return s.refuse(n)
	}
	s.taken.Add(n)
	return nil
}

// Release gives back what was acquired.
func (s *Share) Release(n int64) {
	if s == nil || n <= 0 {
		return
	}
	s.taken.Add(-n)
	s.room.Release(n)
}

func (s *Share) refuse(n int64) error {
	s.refused.Add(1)
	return &ExhaustedError{Part: s.part, Needed: n, Used: s.taken.Load() + s.held.Load(), Limit: s.Limit()}
}

func (s *Share) usage() Usage {
	used := s.taken.Load() + s.held.Load()
	if s.part == Caches {
		used = s.budget.caches.Load()
	}
	return Usage{Part: s.part, Bytes: used, Limit: s.Limit(), Refused: s.refused.Load(), Evicted: s.evicted.Load()}
}

// Account is what one holder has of a share. The zero value of *Account counts nothing.
type Account struct {
	share  *Share
	shrink func(limit int64)
	bytes  atomic.Int64

	mu     sync.Mutex // guards closed, and makes it one step with a change of bytes
	closed bool
}

// Join opens an account. shrink must drop what was used longest ago until the holder has at most
// limit bytes, as far as that can be dropped, and call Set. It is called by Balance, from any
// goroutine.
func (s *Share) Join(shrink func(limit int64)) *Account {
	if s == nil {
		return nil
	}
	a := &Account{share: s, shrink: shrink}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accounts = append(s.accounts, a)
	return a
}

// Set notes what the holder has now. Balance should follow, where the caller holds no lock that
// shrink takes.
func (a *Account) Set(bytes int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed { // a shrink that was under way when the account was closed
		return
	}
	a.share.held.Add(bytes - a.bytes.Swap(bytes))
}

// Close ends the account; the holder has nothing any more.
func (a *Account) Close() {
	if a == nil {
		return
	}
	s := a.share
	s.mu.Lock()
	s.accounts = slices.DeleteFunc(s.accounts, func(other *Account) bool { return other == a })
	s.mu.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.share.held.Add(-a.bytes.Swap(0))
	a.closed = true
}

// Balance has the largest accounts shrink while the part has more than its limit: each to an equal
// part of it. Another caller that is at it makes it return at once. The caller must not hold a lock
// that an account's shrink takes.
func (s *Share) Balance() {
	if s == nil || s.held.Load() <= s.Limit() || !s.balancing.TryLock() {
		return
	}
	defer s.balancing.Unlock()
	s.mu.Lock()
	accounts := slices.Clone(s.accounts)
	s.mu.Unlock()
	before := s.held.Load()
	part := level(accounts, s.Limit())
	for _, a := range accounts {
		if a.bytes.Load() > part {
			a.shrink(part)
		}
	}
	if freed := before - s.held.Load(); freed > 0 {
		s.evicted.Add(uint64(freed))
	}
}

// level is the most that each account may have, so that all together have at most limit: small
// accounts leave their rest to large ones.
func level(accounts []*Account, limit int64) int64 {
	sizes := make([]int64, len(accounts))
	for i, a := range accounts {
		sizes[i] = a.bytes.Load()
	}
	slices.Sort(sizes)
	for i, size := range sizes {
		part := limit / int64(len(sizes)-i)
		if size > part {
			return part
		}
		limit -= size
	}
	return 1<<63 - 1
}
