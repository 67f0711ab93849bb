package parts

import (
	"maps"
	"slices"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
)

// Summary sums up the parts of one parent.
type Summary struct {
	// Inputs and Outputs are numbers by resource; Conditions count the outputs with a condition that
	// is True.
	Inputs, Outputs []int
	Conditions      []map[string]int
	// Failed is the number of parts with a fault, and Failures describes the first few.
	Failed   int
	Failures []Failure
	// DetachedParts are the parts with outputs and without input; DetachedOutputs are their outputs.
	DetachedParts, DetachedOutputs int
	// Change reports that the last round began because the parent has changed. Total and Synced are
	// its parts. Settled reports that all of them have converged once.
	Change, Settled bool
	Total, Synced   int
	// Mapped is the generation at which all parts were synced in a round before the last one; 0 if
	// none is known.
	Mapped int64
	// Finalized reports that the finalize hook has finished with all parts of a departing parent.
	Finalized bool
}

// UnderWay reports whether a part was not synced since the last round began.
func (s *Summary) UnderWay() bool { return s.Synced < s.Total }

// Summary returns the summary of a parent, and reports whether its first round has begun. Later
// changes add the parent's own key to the queue.
func (t *Tracker) Summary(of object.Ref) (Summary, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[of]
	if p == nil || p.seen == nil {
		return Summary{}, false
	}
	p.changed = false
	s := Summary{
		Inputs: slices.Clone(p.inputs), Outputs: slices.Clone(p.outputs),
		Conditions: make([]map[string]int, len(p.conditions)),
		Failed:     p.failures.total, Failures: slices.Clone(p.failures.first),
		DetachedParts: p.detachedParts, DetachedOutputs: p.detachedOutputs,
		Change: p.round.change, Settled: p.round.ended, Total: p.round.total, Synced: p.round.synced,
		Mapped: p.mapped, Finalized: p.isFinalized(),
	}
	for i, c := range p.conditions {
		s.Conditions[i] = maps.Clone(c)
	}
	return s, true
}

// Offer reports whether the status of a parent may be written now, and notes the write. If not, the
// parent's own key is added to the queue for the time at which it may.
func (t *Tracker) Offer(of object.Ref) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[of]
	if p == nil {
		return false
	}
	now := t.clock.Now()
	if p.due().After(now) {
		t.touch(p)
		return false
	}
	p.offered = now
	return true
}

// Sample returns a part for which except returns false, if there is one.
func (t *Tracker) Sample(except func(hook.Key) bool) (hook.Key, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ref, p := range t.byRef {
		for name := range p.parts {
			if key := (hook.Key{Parent: ref, Part: name}); !except(key) {
				return key, true
			}
		}
	}
	return hook.Key{}, false
}

// Tracing is the way in which a sync is traced.
type Tracing int

const (
	// OwnTrace begins a trace.
	OwnTrace Tracing = iota
	// InChange belongs to the trace of the parent's change.
	InChange
	// Untraced is beyond the syncs of a round that are traced.
	Untraced
)

// Trace returns the way in which a sync that has begun is traced. The syncs of a round are in the
// trace of the parent's change, if there is one: those of the first parts, until they have
// converged.
func (t *Tracker) Trace(key hook.Key) Tracing {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[key.Parent]
	switch {
	case key.Part == "" && p == nil:
		return InChange
	case p == nil:
		return OwnTrace
	case key.Part == "":
		return p.round.traceParent()
	}
	of := p.parts[key.Part]
	if of == nil {
		return OwnTrace
	}
	return p.round.trace(of)
}

// traceParent counts a sync of the parent's own key. Whether it belongs to a change is known
// without the round.
func (r *round) traceParent() Tracing {
	r.ownTraced++
	if r.ownTraced > maxTraced && r.underWay() {
		return Untraced
	}
	return InChange
}

func (r *round) trace(p *part) Tracing {
	if p.progress == begun && !p.traced && r.traced < maxTraced {
		p.traced = true
		r.traced++
	}
	switch {
	case p.progress == begun && !p.traced:
		return Untraced
	case r.inTrace && p.traced && (p.progress == begun || p.progress == synced):
		return InChange
	}
	return OwnTrace
}

// Counts are the numbers of the last round for the span of the parent's change.
type Counts struct{ Total, Failed, Traced int }

// Counts returns the numbers of the last round of a parent.
func (t *Tracker) Counts(of object.Ref) Counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[of]
	if p == nil {
		return Counts{}
	}
	return Counts{Total: p.round.total, Failed: p.failures.total, Traced: p.round.traced}
}
