package session

import (
	"container/list"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// State is the state of a session on the hook's side: observed sets and desired lists by subject.
// It outlives streams: the next Hook of the session gets the State of the previous one. Use
// NewState; the zero value is not usable.
type State struct {
	limit    int
	bytes    int // distinct objects, desired lists and the driver's caches
	subjects map[string]*subjectState
	objects  map[hash]*storedObject
	recent   list.List // of *subjectState, most recently used first
}

// subjectState is the state of one subject.
type subjectState struct {
	name string
	set  *set
	list *itemList // the last answer; nil before it
	// cache is data of the hook's driver, of cacheBytes.
	cache      any
	cacheBytes int
	// calls is the number of open calls. They prevent eviction.
	calls int
	place *list.Element
}

// NewState returns an empty state of at most limit bytes; 0 means DefaultStateBytes.
func NewState(limit int) *State {
	if limit == 0 {
		limit = DefaultStateBytes
	}
	return &State{limit: limit, subjects: map[string]*subjectState{}, objects: map[hash]*storedObject{}}
}

// Bytes returns the approximate memory of the state.
func (m *State) Bytes() int { return m.bytes }

// Len returns the number of subjects.
func (m *State) Len() int { return len(m.subjects) }

// subjectStates returns the subjects for a Welcome, most recently used first, as long as the
// message has at most limit bytes; 0 means no limit. It drops the other subjects, and the engine
// then drops them, too.
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

// The numbers of the fields HookMessage.welcome and Welcome.subjects.
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

// commit stores a set as the state of a subject.
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

// use changes the reference counts of the objects of a set, except of those at the ends of a slot
// that both sets share.
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

// answered stores the list of the last answer about a subject, and the driver's cache, if the
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

// evict drops the least recently used subjects until the state is within its limit, and returns
// them. It keeps subjects with open calls.
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
