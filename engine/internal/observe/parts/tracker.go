// Package parts tracks the parents that are reconciled in parts: how many inputs and outputs they
// have, which parts failed, and how far a round of all parts is. It also decides when the next
// parts of a round are added to the queue, and when a status may be written.
//
// It reads no cache and asks no hook. Package mapping reports the inputs and outputs, as events
// change them; package supervisor reports the syncs. A Tracker belongs to one controller and is
// safe for concurrent use. Its memory is bounded by the parts of the parents, and is dropped with
// them. A property test compares its numbers with a scan; other tests run on a fake clock.
package parts

import (
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// statusInterval is the shortest time between two writes of a parent's status.
const statusInterval = time.Second

// Queue is the queue of the controller. Its methods must not call the Tracker.
type Queue interface {
	// Part adds a part to the queue, behind all other keys.
	Part(key hook.Key)
	// Parent adds the parent's own key after a time.
	Parent(key hook.Key, after time.Duration)
}

// Tracker tracks the parents of one controller.
type Tracker struct {
	inputs, outputs int

	mu    sync.Mutex // guards the fields below, and everything that they hold
	clock clock.PassiveClock
	queue Queue
	// byRef holds the parents of the controller. byOwner holds the same parents, and owners of
	// outputs that are not known as parents (yet).
	byRef   map[object.Ref]*parent
	byOwner map[view.Owner]*parent
}

// parent is one parent.
type parent struct {
	owner view.Owner
	// key is the parent's own key; the zero value for an owner of outputs that is no parent.
	key hook.Key
	counts
	failures failures
	// finalized counts the parts with which the finalize hook has finished.
	finalized int
	round     round
	// seen is the state of the parent for which the last round began; nil before the first round.
	// wanted reports that another round must begin.
	seen   *State
	wanted bool
	// uncounted reports that the inputs must be counted, because an event was lost.
	uncounted bool
	// settled is the generation at which all parts converged last. Mapped is the one at which all
	// parts were synced in a round before the last one; 0 if none is known.
	settled, mapped int64
	// offered is the time of the last write of the status. changed reports that the own key is in
	// the queue because of a change.
	offered time.Time
	changed bool
}

// State is the state of a parent that decides about a new round of its parts.
type State struct {
	UID types.UID
	// Hash identifies everything that hooks see of the parent.
	Hash       uint64
	Generation int64
	// Departing reports that the parts are finalized.
	Departing bool
}

// New returns a Tracker for parents with a number of resources of inputs and of outputs. Until
// Start, no key is added to a queue.
func New(inputs, outputs int) *Tracker {
	return &Tracker{
		inputs: inputs, outputs: outputs, clock: clock.RealClock{}, queue: noQueue{},
		byRef: map[object.Ref]*parent{}, byOwner: map[view.Owner]*parent{},
	}
}

// noQueue is the queue of a Tracker that was not started.
type noQueue struct{}

func (noQueue) Part(hook.Key)                  {}
func (noQueue) Parent(hook.Key, time.Duration) {}

// Start sets the clock and the queue.
func (t *Tracker) Start(c clock.PassiveClock, q Queue) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clock = c
	t.queue = q
}

// Output notes the state of an output after an event: o is nil if it no longer exists, or no longer
// belongs to the owner. Undecided reports that it is not known whether the part has an input.
func (t *Tracker) Output(
	resource int, ref object.Ref, owner view.Owner, name string, undecided bool, o *object.Object,
) {
	id := outputID{resource, ref.Namespace, ref.Name}
	var conditions []string
	if o != nil {
		conditions = TrueConditions(o)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byOwner[owner]
	if p == nil && o == nil {
		return
	}
	if p == nil {
		p = &parent{owner: owner, counts: newCounts(t.inputs, t.outputs)}
		t.byOwner[owner] = p
	}
	if o == nil {
		if of := p.removeOutput(id); of != nil {
			t.dropIfEmpty(p, of)
			t.touch(p)
		}
		t.dropUnknown(p)
		return
	}
	before := p.all[id].part
	of := p.part(name)
	if undecided && of.input == NoInput {
		of.input = undecidedInput
	}
	if p.setOutput(id, output{of, conditions}) {
		t.touch(p)
	}
	if before != nil && before != of {
		t.dropIfEmpty(p, before)
	}
}

// Input notes whether a part of a parent has an input, after an event. Find returns the index of
// its resource, or NoInput. It is called within the lock of the Tracker, so that no older state
// overwrites a newer one. If it fails, the parent's own key counts the inputs as soon as they are
// known: another resource may be unknown than that of the event, which does not come again.
func (t *Tracker) Input(key hook.Key, find func() (resource int, err error)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[key.Parent]
	if p == nil || p.seen == nil { // the first round lists the inputs
		return
	}
	resource, err := find()
	if err != nil {
		t.recount(p)
		return
	}
	of := p.parts[key.Part]
	if of == nil && resource == NoInput {
		return
	}
	if of == nil {
		of = p.part(key.Part)
	}
	if p.setInput(of, resource) {
		t.touch(p)
	}
	t.dropIfEmpty(p, of)
}

// recount has the parent's own key count the inputs.
func (t *Tracker) recount(p *parent) {
	if !p.uncounted {
		p.uncounted = true
		t.queue.Parent(p.key, 0)
	}
}

// Forget implements pipeline.Holder: a parent's own key is forgotten with all parts, except its
// outputs, which are forgotten as they go. A part is forgotten as a failure.
func (t *Tracker) Forget(key hook.Key) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := t.byRef[key.Parent]
	switch {
	case p == nil:
	case key.Part == "":
		t.forget(p)
	default:
		if of := p.parts[key.Part]; of != nil && p.failures.clear(of) {
			t.touch(p)
		}
	}
}

// forget makes a parent an owner of outputs. The outputs stay counted, because the parent may come
// back: their objects bring no events then.
func (t *Tracker) forget(p *parent) {
	delete(t.byRef, p.key.Parent)
	for _, of := range p.parts {
		p.failures.clear(of)
		of.progress = outside
		of.finalized = false
		of.traced = false
		of.deferred = false
		of.again = false
		if of.input != undecidedInput {
			p.setInput(of, NoInput)
		}
		if of.outputs == 0 {
			delete(p.parts, of.name)
		}
	}
	*p = parent{owner: p.owner, counts: p.counts}
	t.dropUnknown(p)
}

// dropIfEmpty drops a part without input and outputs.
func (t *Tracker) dropIfEmpty(p *parent, of *part) {
	if of.outputs > 0 || of.input >= 0 {
		return
	}
	p.round.leave(of)
	p.failures.clear(of)
	p.setFinalized(of, false)
	delete(p.parts, of.name)
	t.fill(p)
	t.checkEnd(p)
}

// dropUnknown drops an owner that is no parent and has no outputs.
func (t *Tracker) dropUnknown(p *parent) {
	if p.key == (hook.Key{}) && len(p.all) == 0 {
		delete(t.byOwner, p.owner)
	}
}

// touch adds the parent's own key to the queue at the time at which its status may be written, once
// until the status is read.
func (t *Tracker) touch(p *parent) {
	if p.key == (hook.Key{}) || p.changed {
		return
	}
	p.changed = true
	t.queue.Parent(p.key, max(0, p.due().Sub(t.clock.Now())))
}

// due returns the time from which the status may be written. A round has a status of its own only
// if it takes some time.
func (p *parent) due() time.Time {
	due := p.offered.Add(statusInterval)
	if began := p.round.began.Add(statusInterval); p.round.underWay() && began.After(due) {
		return began
	}
	return due
}

func (p *parent) setFinalized(of *part, finalized bool) {
	if of.finalized == finalized {
		return
	}
	of.finalized = finalized
	if finalized {
		p.finalized++
	} else {
		p.finalized--
	}
}
