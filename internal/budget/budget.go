// Package budget divides this process's memory among the parts that grow with what peers send:
// decoded messages, sessions, cached answers and recordings. When a share is full, callers wait,
// entries are evicted or requests are refused, and each of these is counted.
//
// Make one [Budget] with [New] and pass each part its [Share]. Reserve a message with Lease, or
// keep a cache within the share with Join. The budget only counts: callers report estimated sizes,
// and nothing is allocated here. Objects of the API server cannot be refused; report their size
// with Report, and the evictable shares make room for them.
//
// A Budget is safe for concurrent use. Without a limit it only counts, and a nil *Budget or *Share
// does nothing.
package budget

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// Part names what memory is used for. It is the label "part" of the metrics.
type Part string

const (
	// Decoding covers messages and answers of hooks, from reading them to the end of the sync.
	Decoding Part = "decoding"
	// Sessions covers what the engine keeps for streams.
	Sessions Part = "sessions"
	// Answers covers webhook answers that are cached with their ETag.
	Answers Part = "answers"
	// Recordings covers recorded questions and answers.
	Recordings Part = "recordings"
	// Plans covers the last answer and plan of each parent.
	Plans Part = "plans"
	// Caches covers the API server's objects. It is reported and never refused.
	Caches Part = "caches"
)

// divisors sets the shares: a part may use the limit divided by its divisor. The rest is for
// everything else and for garbage.
var divisors = map[Part]int64{Decoding: 4, Sessions: 6, Answers: 24, Recordings: 24, Plans: 12, Caches: 4}

// evictable lists the parts that shrink to make room for Caches.
var evictable = []Part{Sessions, Answers, Recordings, Plans}

// NoLimit means that a share may use any amount.
const NoLimit = math.MaxInt64

// MessageBytes limits the decoded size of one message, whatever the process's limit.
const MessageBytes = 128 << 20

// Budget counts the memory of one process.
type Budget struct {
	limit  int64           // 0 means none
	shares map[Part]*Share // immutable after New
	caches atomic.Int64
}

// New divides limit bytes into shares. If limit is 0, the shares have no limit but still count.
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

// Report sets the size of the caches. If they exceed their share, the evictable shares shrink.
func (b *Budget) Report(caches int64) {
	if b == nil {
		return
	}
	b.caches.Store(caches)
	for _, part := range evictable {
		b.shares[part].Balance()
	}
}

// excess returns by how many bytes the caches exceed their share.
func (b *Budget) excess() int64 { return max(0, b.caches.Load()-b.shares[Caches].size) }

// Usage shows how much of a share is used.
type Usage struct {
	Part Part
	// Bytes is in use, out of Limit, which may be [NoLimit].
	Bytes, Limit int64
	// Refused counts refused requests. Evicted counts the bytes that were dropped to make room.
	Refused, Evicted uint64
}

// Usage returns how much of each share is used, sorted by part.
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

// ExhaustedError says that a share has no room for a request.
type ExhaustedError struct {
	Part                Part
	Needed, Used, Limit int64
}

// Error names the share, the sizes and the flag that sets the limit.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("memory budget %q: %d bytes needed, %d of %d in use; expected less, or a larger --memory-budget",
		e.Part, e.Needed, e.Used, e.Limit)
}
