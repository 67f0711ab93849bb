package session

import (
	"container/list"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// State is what the hook's side of a session remembers: observed sets and desired lists by subject.
// When a stream ends, pass the State to the next [Hook] of the session. Use [NewState] to make one;
// the zero value cannot be used.
type State struct {
	limit    int
	bytes    int // for distinct objects, desired lists and the driver's caches
	subjects map[string]*subjectState
	objects  map[hash]*storedObject
	recent   list.List // of *subjectState, most recently used first
}

// subjectState is what is remembered about one subject.
type subjectState struct {
	name string
	set  *set
	list *itemList // last answer; nil if there was none
	// cache belongs to the hook's driver and takes about cacheBytes.
	cache      any
	cacheBytes int
	// calls counts open calls, which prevent eviction.
	calls int
	place *list.Element
}

// NewState returns an empty state that is limited to this many bytes. 0 means DefaultStateBytes.
func NewState(limit int) *State {
	if limit == 0 {
		limit = DefaultStateBytes
	}
	return &State{limit: limit, subjects: map[string]*subjectState{}, objects: map[hash]*storedObject{}}
}

// Bytes returns about how much memory the state takes.
func (m *State) Bytes() int { return m.bytes }

// Len returns how many subjects there are.
func (m *State) Len() int { return len(m.subjects) }

// subjectStates lists subjects for a Welcome, most recently used first, as many as fit into a
// message of limit bytes (0 means no limit). It drops the others, and so will the engine.
func (m *State) subjectStates(welcome *streamv1.Welcome, limit uint64) []*streamv1.SubjectState {
	out := make([]*streamv1.SubjectState, 0, len(m.subjects))
	size := proto.Size(welcome)
	for at := m.recent.Front(); at != nil; {
		r := at.Value.(*subjectState)
		at = at.Next()
		state := &streamv1.SubjectState{Subject: r.name, Digest: r.set.digest.wire()}
		next := size + protowire.SizeTag(subjectsField) + protowire.SizeBytes(proto.Size(state))
		//nolint:gosec // not negative
		if limit > 0 && uint64(protowire.SizeTag(welcomeField)+protowire.SizeBytes(next)) > limit {
			m.forget(r.name)
			continue
		}
		size = next
		out = append(out, state)
	}
	return out
}

// Field numbers of HookMessage.welcome and Welcome.subjects.
const (
	welcomeField  = 1
	subjectsField = 7
)

// setOf returns the set of a subject, or nil.
func (m *State) setOf(subject string) *set {
	if r := m.subjects[subject]; r != nil {
		return r.set
	}
	return nil
}

// commit stores a set as a subject's state.
func (m *State) commit(name string, next *set) *subjectState {
	r := m.subjects[name]
	if r == nil {
		r = &subjectState{name: name}
		r.place = m.recent.PushFront(r)
		m.subjects[name] = r
	}
	m.recent.MoveToFront(r.place)
	before := r.set
	r.set = next
	m.use(next, before, +1)
	m.use(before, next, -1)
	return r
}

// use adds to the reference counts of objects in a set. It skips equal ends of slots that are in
// both sets.
func (m *State) use(s, other *set, by int) {
	if s == nil {
		return
	}
	for slot, p := range s.slots {
		var shared []*storedObject
		if other != nil {
			shared = other.slots[slot].objects
		}
		for _, o := range different(p.objects, shared) {
			m.count(o, by)
		}
	}
}

func (m *State) count(o *storedObject, by int) {
	if o.uses == 0 {
		m.objects[o.hash] = o
		m.bytes += o.size
	}
	o.uses += by
	if o.uses == 0 {
		delete(m.objects, o.hash)
		m.bytes -= o.size
	}
}

// answered stores the list from the last answer about a subject, and the driver's cache, if the
// subject still exists.
func (m *State) answered(r *subjectState, last *itemList, cache any, cacheBytes int) {
	if m.subjects[r.name] != r {
		return
	}
	m.bytes += last.bytes() - r.list.bytes() + cacheBytes - r.cacheBytes
	r.list, r.cache, r.cacheBytes = last, cache, cacheBytes
}

func (m *State) forget(name string) {
	r := m.subjects[name]
	if r == nil {
		return
	}
	m.use(r.set, nil, -1)
	m.bytes -= r.list.bytes() + r.cacheBytes
	m.recent.Remove(r.place)
	delete(m.subjects, name)
}

// clear drops all subjects.
func (m *State) clear() {
	for name := range m.subjects {
		m.forget(name)
	}
}

// evict drops subjects, least recently used first, until the state is within its limit, and returns
// them. Subjects with open calls are kept.
func (m *State) evict() []string {
	var names []string
	for at := m.recent.Back(); at != nil && m.bytes > m.limit; {
		r := at.Value.(*subjectState)
		at = at.Prev()
		if r.calls == 0 {
			m.forget(r.name)
			names = append(names, r.name)
		}
	}
	return names
}
