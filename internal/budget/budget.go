// Package budget divides the memory of the process among the parts that grow with the input from
// peers: decoded messages, sessions, cached answers, recordings. If a share is exhausted, callers
// wait, entries are evicted or requests are refused; all of it is counted.
//
// The package allocates nothing itself: its users report estimated sizes. The API server's objects
// cannot be refused; their size is reported (Report), and evictable shares make room for them. The
// limit comes from a flag or from the container. A Budget is safe for concurrent use. One without a
// limit only counts, and a nil *Budget or *Share does nothing. Tests use numbers only.
package budget

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Part is a use of memory, and the label "part" of the metrics.
type Part string

const (
	// Decoding is messages and answers of hooks from reading to the end of the sync.
	Decoding Part = "decoding"
	// Sessions is the engine's state of streams.
	Sessions Part = "sessions"
	// Answers is webhook answers that are cached with their ETag.
	Answers Part = "answers"
	// Recordings is recorded questions and answers.
	Recordings Part = "recordings"
	// Plans is each parent's last answer and plan.
	Plans Part = "plans"
	// Caches is the API server's objects. It is reported and never refused.
	Caches Part = "caches"
)

// divisors divide the limit: a part's share is the limit divided by its divisor. The rest is for
// everything else and for garbage.
var divisors = map[Part]int64{Decoding: 4, Sessions: 6, Answers: 24, Recordings: 24, Plans: 12, Caches: 4}

// evictable are the parts that make room for Caches.
var evictable = []Part{Sessions, Answers, Recordings, Plans}

// NoLimit is the limit of a share without one.
const NoLimit = math.MaxInt64

// MessageBytes bounds the decoded size of one message, independent of the process's limit.
const MessageBytes = 128 << 20

// Budget is the memory of one process.
type Budget struct {
	limit  int64           // 0 means none
	shares map[Part]*Share // immutable after New
	caches atomic.Int64
}

// New divides limit bytes. If limit is 0, the shares have no limit, and what they hold is counted.
func New(limit int64) *Budget {
	b := &Budget{limit: max(0, limit), shares: map[Part]*Share{}}
	for part, divisor := range divisors {
		size := int64(NoLimit)
		if b.limit > 0 {
			size = b.limit / divisor
		}
		b.shares[part] = newShare(b, part, size)
	}
	return b
}

// Limit returns the limit of the process; 0 means no limit.
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

// Report sets the size of the caches. If it exceeds their share, the evictable shares shrink.
func (b *Budget) Report(caches int64) {
	if b == nil {
		return
	}
	b.caches.Store(caches)
	for _, part := range evictable {
		b.shares[part].Balance()
	}
}

// excess returns the bytes by which the caches exceed their share.
func (b *Budget) excess() int64 { return max(0, b.caches.Load()-b.shares[Caches].size) }

// Usage is the state of one share.
type Usage struct {
	Part Part
	// Bytes are in use, of Limit, which may be NoLimit.
	Bytes, Limit int64
	// Refused counts refused requests, Evicted the bytes dropped to make room.
	Refused, Evicted uint64
}

// Usage returns the state of all shares, sorted by part.
func (b *Budget) Usage() []Usage {
	if b == nil {
		return nil
	}
	out := make([]Usage, 0, len(b.shares))
	for _, s := range b.shares {
		out = append(out, s.Usage())
	}
	slices.SortFunc(out, func(a, b Usage) int {
		if a.Part < b.Part {
			return -1
		}
		return 1
	})
	return out
}

// ExhaustedError reports that a share has no room for a request.
type ExhaustedError struct {
	Part                Part
	Needed, Used, Limit int64
}

// Error names the share, the sizes and the flag.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("memory budget %q: %d bytes needed, %d of %d in use; expected less, or a larger --memory-budget",
		e.Part, e.Needed, e.Used, e.Limit)
}
