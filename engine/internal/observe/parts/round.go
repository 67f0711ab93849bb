package parts

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Bounds of a round. They are per parent.
const (
	// maxQueued bounds the parts in the queue. A part that waits there for long counts as urgent in
	// the end, so a long queue of one parent would hold up the changes of others.
	maxQueued = 64
	// maxTraced bounds the parts with traced syncs, and the traced syncs of the parent's own key.
	maxTraced = 100
)

// progress is the progress of a part in a round.
type progress int

const (
	// outside is the progress of a part that came after the round began. It is not counted.
	outside progress = iota
	// waiting parts are not in the queue yet, queued ones are.
	waiting
	queued
	// begun parts are being synced, or their sync was postponed.
	begun
	// synced parts had a sync since the round began; converged ones need nothing more.
	synced
	converged
)

// round syncs all parts of a parent once: a bounded number is in the queue, and the next ones
// follow as syncs begin. A part that is synced for another reason counts, too. Deferred parts
// follow when all others have begun. A new round replaces the present one.
//
// Invariant: total, queued, synced and converged count the parts by their progress; a converged
// part is also synced. again counts the parts with again set.
type round struct {
	began time.Time
	// ended reports that all parts had converged once.
	ended bool
	// change reports that the parent has changed, inTrace that the syncs belong to the trace of the
	// parent's change, and departing that the parts are finalized.
	change, inTrace, departing bool
	// remaining holds the parts that were waiting when the round began and may still be.
	remaining []*part
	// deferredParts are the parts that were deferred and may still be.
	deferredParts                           []*part
	total, queued, synced, converged, again int
	// traced and ownTraced count towards maxTraced.
	traced, ownTraced int
}

// newRound begins a round of all parts: first those that most rounds have left out in succession,
// so that each is synced even if rounds replace each other; then in the order of their names. A
// part with an undecided input takes part only if the parts are finalized.
func newRound(began time.Time, parts map[string]*part, departing bool) round {
	r := round{began: began, departing: departing, remaining: make([]*part, 0, len(parts))}
	for _, p := range parts {
		switch p.progress {
		case waiting, queued, begun:
			p.leftOut++
		case outside, synced, converged:
			p.leftOut = 0
		}
		p.progress = outside
		p.finalized = false
		p.traced = false
		p.again = false
		switch {
		case p.input != undecidedInput || departing:
			p.progress = waiting
			p.deferred = false
			r.remaining = append(r.remaining, p)
		case p.deferred:
			r.deferredParts = append(r.deferredParts, p)
		}
	}
	r.total = len(r.remaining)
	slices.SortFunc(r.remaining, func(a, b *part) int {
		return cmp.Or(cmp.Compare(b.leftOut, a.leftOut), strings.Compare(a.name, b.name))
	})
	return r
}

// next returns the part to add to the queue; nil if the queue has enough or no part waits.
func (r *round) next() *part {
	for r.queued < maxQueued && len(r.remaining) > 0 {
		p := r.remaining[0]
		r.remaining = r.remaining[1:]
		if p.progress == waiting {
			p.progress = queued
			r.queued++
			return p
		}
	}
	if len(r.remaining) == 0 {
		r.remaining = nil
	}
	return r.nextDeferred()
}

// nextDeferred returns the deferred part to add to the queue; nil if the queue has enough, a part
// has not begun, or no part is deferred.
func (r *round) nextDeferred() *part {
	for r.again < maxQueued && !r.beginning() && len(r.deferredParts) > 0 {
		p := r.deferredParts[0]
		r.deferredParts = r.deferredParts[1:]
		if p.deferred {
			p.deferred = false
			p.again = true
			r.again++
			return p
		}
	}
	if len(r.deferredParts) == 0 {
		r.deferredParts = nil
	}
	return nil
}

// beginning reports whether a part has not begun its first sync of the round.
func (r *round) beginning() bool { return len(r.remaining) > 0 || r.queued > 0 }

// deferPart has a part synced again after the first syncs of the round. One that waits for its
// first sync needs no other.
func (r *round) deferPart(p *part) {
	if p.progress == waiting || p.progress == queued || p.deferred {
		return
	}
	p.deferred = true
	r.deferredParts = append(r.deferredParts, p)
}

// undefer notes that a part needs no other sync.
func (r *round) undefer(p *part) {
	if p.again {
		r.again--
	}
	p.deferred = false
	p.again = false
}

// begin notes that a sync of a part begins.
func (r *round) begin(p *part) {
	r.undefer(p)
	switch p.progress {
	case queued:
		r.queued--
		p.progress = begun
	case waiting:
		p.progress = begun
	}
}

// end notes that a sync of a part ended: it has converged, or needs another sync.
func (r *round) end(p *part, isConverged bool) {
	if p.progress == begun {
		p.progress = synced
		r.synced++
	}
	if p.progress == synced && isConverged {
		p.progress = converged
		r.converged++
	}
}

// leave takes a part out that is gone.
func (r *round) leave(p *part) {
	r.undefer(p)
	if p.progress == outside {
		return
	}
	r.total--
	switch p.progress {
	case queued:
		r.queued--
	case converged:
		r.converged--
		r.synced--
	case synced:
		r.synced--
	}
	p.progress = outside
}

// underWay reports whether a part was not synced yet.
func (r *round) underWay() bool { return r.synced < r.total }

// settled reports whether all parts have converged.
func (r *round) settled() bool { return r.converged == r.total }
