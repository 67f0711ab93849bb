package budget

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
)

// Share limits the memory of one part. Use Acquire and Release, or Lease, for memory that is needed
// for a while, and Join for a cache, which shrinks when it should.
type Share struct {
	budget *Budget
	part   Part
	size   int64
	room   *room

	taken            atomic.Int64 // by Acquire; at most size
	held             atomic.Int64 // by accounts
	refused, evicted atomic.Uint64
	balancing        sync.Mutex // held while one caller balances

	mu       sync.Mutex // guards accounts
	accounts []*Account
}

func newShare(b *Budget, part Part, size int64) *Share {
	return &Share{budget: b, part: part, size: size, room: newRoom(size)}
}

// Limit returns how much the part may use now.
func (s *Share) Limit() int64 {
	if s == nil || s.budget.limit == 0 {
		return NoLimit
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

// Acquire reserves n bytes and waits for them until ctx ends. It returns an *[ExhaustedError] at
// the deadline, or at once if n exceeds the share. A caller that already holds bytes must use
// TryAcquire.
//
// A caller that waits for many bytes does not block those that need few: they pass it until
// together they have taken the share's size.
func (s *Share) Acquire(ctx context.Context, n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	if n > s.size {
		return s.refuse(n)
	}
	if err := s.room.wait(ctx, n); err != nil {
		if errors.Is(err, context.Canceled) {
			return err
		}
		return s.refuse(n)
	}
	s.taken.Add(n)
	return nil
}

// TryAcquire reserves n bytes, or returns an *[ExhaustedError] at once. It does not queue behind
// callers that wait.
func (s *Share) TryAcquire(n int64) error {
	if s == nil || n <= 0 {
		return nil
	}
	if !s.room.take(n) {
		return s.refuse(n)
	}
	s.taken.Add(n)
	return nil
}

// Release returns acquired bytes.
func (s *Share) Release(n int64) {
	if s == nil || n <= 0 {
		return
	}
	s.taken.Add(-n)
	s.room.put(n)
}

func (s *Share) refuse(n int64) error {
	s.refused.Add(1)
	return &ExhaustedError{Part: s.part, Needed: n, Used: s.taken.Load() + s.held.Load(), Limit: s.Limit()}
}

// Usage returns how much of the share is used. The share must not be nil.
func (s *Share) Usage() Usage {
	used := s.taken.Load() + s.held.Load()
	if s.part == Caches {
		used = s.budget.caches.Load()
	}
	return Usage{Part: s.part, Bytes: used, Limit: s.Limit(), Refused: s.refused.Load(), Evicted: s.evicted.Load()}
}

// Account counts what one cache uses of a share. A nil *Account counts nothing.
type Account struct {
	share  *Share
	shrink func(limit int64)
	bytes  atomic.Int64

	mu     sync.Mutex // guards closed, and makes checking it and changing bytes one step
	closed bool
}

// Join opens an account for a cache. shrink must drop the least recently used entries until the
// cache has at most limit bytes, if possible, and then call Set. Balance may call it from any
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

// Set records how large the cache is. Call Balance afterwards, unless the caller holds a lock that
// shrink takes.
func (a *Account) Set(bytes int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed { // a concurrent shrink may call Set after Close
		return
	}
	a.share.held.Add(bytes - a.bytes.Swap(bytes))
}

// Close closes the account and returns its bytes.
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

// Balance shrinks the largest caches to an equal size while the part exceeds its limit. It returns
// at once if another caller is doing so. The caller must not hold a lock that shrink takes.
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

// level returns how large an account may be so that all of them fit within limit. What small
// accounts do not use is left to large ones.
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
	return NoLimit
}
