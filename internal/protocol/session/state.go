package session

import (
	"container/list"

	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// Memory is what a hook holds of the questions of one session id. It outlives streams: a Hook is
// made with the Memory that the one before it left. The zero value is not usable; NewMemory makes
// one.
type State struct {
	limit    int
	bytes    int // of the objects, each once, and of the desired lists
	subjects map[string]*subjectState
	objects  map[hash]*storedObject
	recent   list.List // of *remembered, the one used last in front
}

// remembered is what is held about one subject.
type subjectState struct {
	name string
	set  *set
	list *itemList // the last answer; nil where there is none
	// recall is what the hook's driver keeps of it.
	cache any
	// calls is how many are under way; a subject with any is not evicted.
	calls int
	place *list.Element
}

// NewMemory makes an empty memory of at most limit bytes; 0 stands for DefaultStateBytes.
func NewState(limit int) *State {
	if limit == 0 {
		limit = DefaultStateBytes
	}
	return &State{limit: limit, subjects: map[string]*subjectState{}, objects: map[hash]*storedObject{}}
}

// Bytes is how much is held.
func (m *State) Bytes() int { return m.bytes }

// subjectStates returns what the engine may build on, as far as it fits into a Welcome of at most limit
// bytes beside what that has already: the subjects used last first. The others are forgotten, on
// both sides: the engine asks about them anew. A limit of 0 is none.
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

// setOf is what is held about a subject; nil where nothing is.
func (m *State) setOf(subject string) *set {
	if r := m.subjects[subject]; r != nil {
		return r.set
	}
	return nil
}

// commit makes a set the one that is held for a subject.
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

// use counts the objects of a set, except those in slots that it shares with another.
func (m *State) use(s, other *set, by int) {
	if s == nil {
		return
	}
	for slot, p := range s.slots {
		if other != nil && sameSlice(p.objects, other.slots[slot].objects) {
			continue
		}
		for _, o := range p.objects {
			m.count(o, by)
		}
	}
}

func sameSlice(a, b []*storedObject) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

func (m *State) count(o *storedObject, by int) {
	if o.uses == 0 {
		m.objects[o.hash] = o
		m.bytes += o.size
	}
	if o.uses += by; o.uses == 0 {
		delete(m.objects, o.hash)
		m.bytes -= o.size
	}
}

// answered makes a list the last answer about a subject, if the subject is still held.
func (m *State) answered(r *subjectState, last *itemList) {
	if m.subjects[r.name] != r {
		return
	}
	m.bytes += last.bytes() - r.list.bytes()
	r.list = last
}

func (m *State) forget(name string) {
	r := m.subjects[name]
	if r == nil {
		return
	}
	m.use(r.set, nil, -1)
	m.bytes -= r.list.bytes()
	m.recent.Remove(r.place)
	delete(m.subjects, name)
}

// clear forgets all subjects.
func (m *State) clear() {
	for name := range m.subjects {
		m.forget(name)
	}
}

// evict forgets what was used longest ago until the limit is kept, and names it. Subjects with
// calls under way stay.
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
