// Package budget divides the memory that the process may use among the parts that grow with what
// peers send: messages that are being decoded, sessions, kept answers, recordings. What a part
// cannot have is waited for, evicted or refused, and counted.
//
// It allocates nothing itself: its users report sizes, which are estimates. It is not for the API
// server's objects, which cannot be refused; their size is reported (Report), and what can be
// evicted makes room for them. The limit comes from a flag or from the container. A Budget is safe
// for concurrent use, and a nil *Budget or *Share has no limit. Tests drive it with numbers alone.
package budget

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Part names a use of memory; it is the label "part" of the metrics.
type Part string

const (
	// Decoding is messages and answers from hooks that are read, decoded and used by a sync.
	Decoding Part = "decoding"
	// Sessions is what the engine remembers of the hooks at the other ends of streams.
	Sessions Part = "sessions"
	// Answers is webhook answers that are kept for their ETag.
	Answers Part = "answers"
	// Recordings is what is recorded of questions and answers.
	Recordings Part = "recordings"
	// Plans is what is remembered of each parent's last answer and plan.
	Plans Part = "plans"
	// Caches is the API server's objects. It is reported, and never refused.
	Caches Part = "caches"
)

// divisors are the parts of the limit: one n-th each. What is left is for everything else and for
// garbage.
var divisors = map[Part]int64{Decoding: 4, Sessions: 6, Answers: 24, Recordings: 24, Plans: 12, Caches: 4}

// evictable are the parts that make room for caches.
var evictable = []Part{Sessions, Answers, Recordings, Plans}

// MessageBytes bounds what one message may take once it is built, whatever the limit of the
// process.
const MessageBytes = 128 << 20

// Budget is the memory of one process.
type Budget struct {
	limit  int64
	shares map[Part]*Share // complete from the beginning
	caches atomic.Int64
}

// New divides limit bytes. Without a limit (0) it returns nil.
func New(limit int64) *Budget {
	if limit <= 0 {
		return nil
	}
	b := &Budget{limit: limit, shares: map[Part]*Share{}}
	for part, divisor := range divisors {
		b.shares[part] = newShare(b, part, limit/divisor)
	}
	return b
}

// Limit is what the process may use in all; 0 is no limit.
func (b *Budget) Limit() int64 {
	if b == nil {
		return 0
	}
	return b.limit
}

// Share returns the share of a part.
func (b *Budget) Share(part Part) *Share {
	if b == nil {
		return nil
	}
	return b.shares[part]
}

// Report sets the size of the caches. The shares that can be evicted shrink by what caches have
// beyond theirs.
func (b *Budget) Report(caches int64) {
	if b == nil {
		return
	}
	b.caches.Store(caches)
	for _, part := range evictable {
		b.shares[part].Balance()
	}
}

// excess is what caches have beyond their share.
func (b *Budget) excess() int64 { return max(0, b.caches.Load()-b.shares[Caches].size) }

// Usage is the state of one share.
type Usage struct {
	Part Part
	// Bytes are in use, of Limit.
	Bytes, Limit int64
	// Refused counts requests that were refused, Evicted the bytes that were dropped to make room.
	Refused, Evicted uint64
}

// Usage lists all shares in the order of their names.
func (b *Budget) Usage() []Usage {
	if b == nil {
		return nil
	}
	out := make([]Usage, 0, len(b.shares))
	for _, s := range b.shares {
		out = append(out, s.usage())
	}
	slices.SortFunc(out, func(a, b Usage) int {
		if a.Part < b.Part {
			return -1
		}
		return 1
	})
	return out
}

// ExhaustedError reports that a share has no room.
type ExhaustedError struct {
	Part                Part
	Needed, Used, Limit int64
}

// Error names the share, the sizes and the flag.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("memory budget %q: %d bytes needed, %d of %d in use; expected less, or a larger --memory-budget",
		e.Part, e.Needed, e.Used, e.Limit)
}
