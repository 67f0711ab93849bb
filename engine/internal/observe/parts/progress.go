package parts

import (
	"iter"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// Want demands another round of all parts of a parent, for a reason beside its own state.
func (t *Tracker) Want(parent object.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byRef[parent]; p != nil {
		p.wanted = true
	}
}

// Resync demands another round of all parts of a parent, unless one is under way: that one syncs
// all of them, and would not end if resyncs came faster.
func (t *Tracker) Resync(parent object.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.byRef[parent]; p != nil && !p.round.underWay() {
		p.wanted = true
	}
}

// Observe begins a round of all parts if the state of the parent has changed, or another round is
// wanted. It counts the inputs if an event was lost. List yields the inputs by map key, with the
// index of their resource; it is called within the lock of the Tracker. If it fails, no round
// begins, and the next Observe tries again. Converged reports that the parent has converged at its
// generation, for a parent that is new here.
func (t *Tracker) Observe(
	key hook.Key, now State, converged bool, list func() (iter.Seq2[string, int], error),
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.known(key, now.UID)
	begins := p.seen == nil || *p.seen != now || p.wanted
	if !begins && !p.uncounted {
		return nil
	}
	inputs, err := list()
	if err != nil {
		return err
	}
	p.uncounted = false
	if !begins {
		t.setInputs(p, inputs)
		t.touch(p)
		return nil
	}
	change := p.seen == nil && !converged || p.seen != nil && (*p.seen != now || p.round.change && p.round.underWay())
	if p.seen == nil && converged {
		p.settled = now.Generation
	}
	if p.seen != nil && !p.round.underWay() {
		p.mapped = p.seen.Generation
	}
	t.setInputs(p, inputs)
	p.seen = &now
	p.wanted = false
	p.finalized = 0
	p.round = newRound(t.clock.Now(), p.parts, now.Departing)
	p.round.change = change
	p.round.inTrace = now.Generation != 0 && p.settled != now.Generation
	t.fill(p)
	t.checkEnd(p)
	return nil
}

// known returns the parent with a key. If it has replaced another one of its name, that one is
// forgotten.
func (t *Tracker) known(key hook.Key, uid types.UID) *parent {
	owner := view.Owner{UID: uid, Namespace: key.Parent.Namespace}
	p := t.byRef[key.Parent]
	if p != nil && p.owner != owner {
		t.forget(p)
		p = nil
	}
	if p != nil {
		return p
	}
	p = t.byOwner[owner]
	if p == nil {
		p = &parent{owner: owner, counts: newCounts(t.inputs, t.outputs)}
		t.byOwner[owner] = p
	}
	p.key = key
	t.byRef[key.Parent] = p
	return p
}

// setInputs replaces the inputs of a parent.
func (t *Tracker) setInputs(p *parent, inputs iter.Seq2[string, int]) {
	now := map[*part]struct{}{}
	for name, resource := range inputs {
		of := p.part(name)
		p.setInput(of, resource)
		now[of] = struct{}{}
	}
	for _, of := range p.parts {
		if _, found := now[of]; found || of.input == undecidedInput {
			continue
		}
		p.setInput(of, NoInput)
		t.dropIfEmpty(p, of)
	}
}

// fill adds parts of the round to the queue.
func (t *Tracker) fill(p *parent) {
	for of := p.round.next(); of != nil; of = p.round.next() {
		t.queue.Part(hook.Key{Parent: p.key.Parent, Part: of.name})
	}
}

// Begin notes that a sync of a part begins.
func (t *Tracker) Begin(key hook.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, of := t.find(key)
	if of == nil {
		return
	}
	p.round.begin(of)
	t.fill(p)
}

// Defer reports whether a part need not be synced yet, because parts of its parent wait for their
// first sync of a round: these come first. The part is added to the queue after them, unless it is
// synced before that for another reason.
func (t *Tracker) Defer(key hook.Key) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, of := t.find(key)
	if of == nil || !p.round.beginning() {
		return false
	}
	p.round.deferPart(of)
	return true
}

// Result is the end of the sync of a part.
type Result struct {
	// Fault identifies the fault that is reported; empty for none. Reason and Message describe it.
	Fault, Reason, Message string
	// Postponed reports that the sync was given up without a report, to be tried again.
	Postponed bool
	// Converged reports that the part needs nothing more, Finalized that the finalize hook has
	// finished with it.
	Converged, Finalized bool
}

// End notes that a sync of a part has ended.
func (t *Tracker) End(key hook.Key, r Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p, of := t.find(key)
	if of == nil || r.Postponed {
		return
	}
	var changed bool
	if r.Fault != "" {
		changed = p.failures.set(of, Failure{Part: of.name, Reason: r.Reason, Message: r.Message, key: r.Fault})
	} else {
		changed = p.failures.clear(of)
	}
	p.setFinalized(of, r.Finalized)
	wasUnderWay := p.round.underWay()
	p.round.end(of, r.Converged)
	if changed || wasUnderWay {
		t.touch(p)
	}
	t.checkEnd(p)
}

// checkEnd adds the parent's own key to the queue when all parts have converged, or when the
// finalizer can go.
func (t *Tracker) checkEnd(p *parent) {
	ends := p.seen != nil && !p.round.ended && p.round.settled()
	if ends {
		p.round.ended = true
		p.settled = p.seen.Generation
	}
	if ends || p.isFinalized() {
		t.queue.Parent(p.key, 0)
	}
}

// isFinalized reports whether the finalize hook has finished with all parts.
func (p *parent) isFinalized() bool { return p.round.departing && p.finalized == len(p.parts) }

// find returns a part and its parent; nil if it is not known.
func (t *Tracker) find(key hook.Key) (*parent, *part) {
	p := t.byRef[key.Parent]
	if p == nil || key.Part == "" {
		return nil, nil
	}
	return p, p.parts[key.Part]
}
