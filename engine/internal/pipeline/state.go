package pipeline

import (
	"container/list"
	"maps"
	"slices"
	"sync"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/types"
)

// parentState is everything that the pipeline remembers of one key between two syncs. Each part is
// a hint: without it the next sync costs more, repeats an Event at most, and has the same result.
// So a restart loses nothing, and a part may be dropped at any time between two syncs.
//
// The queue never gives a key to two workers at the same time, so a parentState needs no lock. The
// type of a part is declared in the file of its subject.
//
// Invariant: all parts are about the parent with this UID.
type parentState struct {
	uid types.UID
	// converged has the children that were found or written as desired, and previous the last
	// answer and its plan (package plan).
	converged *plan.Converged
	previous  plan.Previous
	// owned has the children that need not be classified again (package shape).
	owned shape.OwnedSnapshot
	// status and metadata are the last ones that were desired of the parent, as the server took
	// them.
	status   reachedStatus
	metadata reachedMetadata
	// fault is the fault that the parent's condition reports.
	fault reportedFault
	// events are those of the last answer, and warnings those of the API server about children.
	events   recordedEvents
	warnings childWarnings
	// circuit counts rewrites, and change is the change that is being traced.
	circuit circuitState
	change  tracedChange
	// asked is the last question that was answered.
	asked lastQuestion
}

// setParent makes the state that of the parent with a UID. If it was an earlier parent's of the
// same name, everything is dropped and the earlier UID is returned.
func (s *parentState) setParent(uid types.UID) (earlier types.UID) {
	if s.uid == uid {
		return ""
	}
	earlier = s.uid
	*s = parentState{uid: uid}
	return earlier
}

// size returns the approximate size of the state in bytes, without the parts that are always small.
func (s *parentState) size() int64 {
	return int64(s.previous.Bytes() + s.converged.Bytes() + s.owned.Bytes() + s.metadata.bytes() +
		s.warnings.bytes() + s.circuit.bytes())
}

// keyState is a parentState with its place in states.
type keyState struct {
	parentState
	key hook.Key
	// place is the state's place in uses; nil while its key is being synced. bytes is its size
	// then, that from before the sync.
	place *list.Element
	bytes int64
	// forgotten reports that the key was forgotten, perhaps while it was being synced.
	forgotten bool
}

// states holds the states of a pipeline's keys. It is safe for concurrent use.
type states struct {
	account Account

	// mu guards the fields below. A parentState belongs to the one sync of its key that is running,
	// and to mu between syncs.
	mu    sync.Mutex
	byKey map[hook.Key]*keyState
	// parts has the keys of byKey that are parts, by parent.
	parts map[object.Ref]map[hook.Key]struct{}
	// uses orders and counts the states of byKey; open has those with an open circuit.
	uses uses
	open map[hook.Key]struct{}
}

func newStates(open OpenAccount) *states {
	s := &states{
		byKey: map[hook.Key]*keyState{}, parts: map[object.Ref]map[hook.Key]struct{}{},
		open: map[hook.Key]struct{}{}, account: unlimited{},
	}
	if open != nil {
		s.account = open(s.shrink)
	}
	return s
}

// hold returns the state of a key for one sync, a new one if necessary. The caller must give it
// back.
func (s *states) hold(key hook.Key) *keyState {
	s.mu.Lock()
	defer s.mu.Unlock()
	state, ok := s.byKey[key]
	if !ok {
		state = &keyState{key: key}
		s.byKey[key] = state
		s.addPart(key)
	}
	s.uses.begin(state)
	return state
}

// addPart adds a key to the parts of its parent, if it is a part.
func (s *states) addPart(key hook.Key) {
	if key.Part == "" {
		return
	}
	if s.parts[key.Parent] == nil {
		s.parts[key.Parent] = map[hook.Key]struct{}{}
	}
	s.parts[key.Parent][key] = struct{}{}
}

// partsOf returns the parts of a parent.
func (s *states) partsOf(parent object.Ref) []hook.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.parts[parent]))
}

// find returns the state of a key; nil if there is none. The caller has the key from the queue, or
// only looks whether there is one.
func (s *states) find(key hook.Key) *keyState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byKey[key]
}

// isForgotten reports whether the key of a state was forgotten since the state is held.
func (s *states) isForgotten(state *keyState) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return state.forgotten
}

// giveBack ends a sync's use of a state.
func (s *states) giveBack(state *keyState) {
	s.mu.Lock()
	if !state.forgotten {
		state.previous.Compact()
		state.circuit.compact()
		s.uses.end(state)
	}
	total := s.uses.total
	s.mu.Unlock()
	s.account.Set(total)
}

// forget drops a key.
func (s *states) forget(key hook.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.byKey[key]
	if state == nil {
		return
	}
	s.uses.forget(state)
	state.forgotten = true
	delete(s.byKey, key)
	delete(s.open, key)
	if parts := s.parts[key.Parent]; key.Part != "" && parts != nil {
		delete(parts, key)
		if len(parts) == 0 {
			delete(s.parts, key.Parent)
		}
	}
}

// shrink drops the previous answers of the keys that were synced longest ago, until at most limit
// bytes are held or nothing is left to drop. The converged children stay: without them, values that
// the server changes would be written again.
func (s *states) shrink(limit int64) {
	s.mu.Lock()
	for e := s.uses.recent.Back(); e != nil && s.uses.total > limit; e = e.Prev() {
		state := e.Value.(*keyState)
		state.previous = plan.Previous{}
		s.uses.resize(state)
	}
	total := s.uses.total
	s.mu.Unlock()
	s.account.Set(total)
}

// setOpen notes whether the circuit of a held state is open, and returns the number of open ones. A
// key that was forgotten has none.
func (s *states) setOpen(state *keyState) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if state.circuit.isOpen() && !state.forgotten {
		s.open[state.key] = struct{}{}
	} else {
		delete(s.open, state.key)
	}
	return len(s.open)
}

// openCircuits returns the number of keys with an open circuit.
func (s *states) openCircuits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}
