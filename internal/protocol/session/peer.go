package session

import (
	"container/list"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// Observed is an object that the engine observed. Equal values must have equal content, because
// sets are compared without decoding objects.
type Observed interface {
	comparable
	Namespace() string
	Name() string
}

// Slot holds the objects in one slot, ordered by namespace and name.
type Slot[O Observed] struct {
	Slot    uint32
	Objects []O
}

// entryBytes is about how much memory one entry takes in the peer state.
const entryBytes = 128

// peerState is what the engine assumes that the hook holds.
type peerState[O Observed] struct {
	encode   func(O) *hookv1.ObservedObject
	limit    int
	bytes    int // for entries, distinct objects, and last answers
	subjects map[string]*peerSubject[O]
	recent   list.List // of *peerSubject[O], most recently used first
	objects  map[O]*peerObject[O]
	hashes   map[hash]*peerObject[O]
}

// peerSubject is what the hook is assumed to hold for one subject.
type peerSubject[O Observed] struct {
	name   string
	slots  map[uint32][]entry[O]
	digest digest
	size   int // entries
	list   *itemList
	calls  int
	place  *list.Element
}

// entry is an object in a set.
type entry[O Observed] struct {
	object O
	known  *peerObject[O]
}

// peerObject is an object that the hook holds. raw is set only until the object is sent. The object
// itself stays in memory, and its message's size is used as an estimate.
type peerObject[O Observed] struct {
	first O
	hash  hash
	size  int
	uses  int
	raw   []byte
}

func newPeerState[O Observed](encode func(O) *hookv1.ObservedObject, limit int) *peerState[O] {
	return &peerState[O]{
		encode:   encode,
		limit:    limit,
		subjects: map[string]*peerSubject[O]{},
		objects:  map[O]*peerObject[O]{},
		hashes:   map[hash]*peerObject[O]{},
	}
}

// commit stores a changed set as a subject's state.
func (b *peerState[O]) commit(name string, c *change[O]) *peerSubject[O] {
	s := b.subjects[name]
	if s == nil {
		s = &peerSubject[O]{name: name}
		s.place = b.recent.PushFront(s)
		b.subjects[name] = s
	}
	b.recent.MoveToFront(s.place)
	before := s.slots
	b.use(c.slots, before, +1)
	for _, r := range c.replaced {
		b.count(r.entry.known, +1)
	}
	b.use(before, c.slots, -1)
	for _, r := range c.replaced {
		place := &c.slots[r.slot][r.place]
		b.count(place.known, -1)
		*place = r.entry
	}
	b.bytes += (c.size - s.size) * entryBytes
	s.slots = c.slots
	s.digest = c.digest
	s.size = c.size
	return s
}

// use adds to the reference counts of objects in these slots. It skips equal ends of slots that are
// in both maps.
func (b *peerState[O]) use(slots, other map[uint32][]entry[O], by int) {
	for slot, entries := range slots {
		for _, e := range different(entries, other[slot]) {
			b.count(e.known, by)
		}
	}
}

// different returns the elements of a list without those that another list shares at its beginning
// and at its end.
func different[E comparable](list, other []E) []E {
	if len(list) == len(other) && len(list) > 0 && &list[0] == &other[0] {
		return nil
	}
	head := 0
	shorter := min(len(list), len(other))
	for head < shorter && list[head] == other[head] {
		head++
	}
	tail := 0
	for tail < shorter-head && list[len(list)-1-tail] == other[len(other)-1-tail] {
		tail++
	}
	return list[head : len(list)-tail]
}

func (b *peerState[O]) count(k *peerObject[O], by int) {
	if k.uses == 0 {
		b.objects[k.first], b.hashes[k.hash] = k, k
		b.bytes += k.size
		k.raw = nil
	}
	k.uses += by
	if k.uses == 0 {
		b.bytes -= k.size
		delete(b.objects, k.first)
		delete(b.hashes, k.hash)
	}
}

// answered stores the list from the last answer about a subject, if the subject still exists.
func (b *peerState[O]) answered(s *peerSubject[O], last *itemList) {
	if b.subjects[s.name] == s {
		b.bytes += last.bytes() - s.list.bytes()
		s.list = last
	}
}

func (b *peerState[O]) forget(name string) {
	s := b.subjects[name]
	if s == nil {
		return
	}
	b.use(s.slots, nil, -1)
	b.bytes -= s.size*entryBytes + s.list.bytes()
	b.recent.Remove(s.place)
	delete(b.subjects, name)
}

// clear drops all subjects.
func (b *peerState[O]) clear() {
	for name := range b.subjects {
		b.forget(name)
	}
}

// evict drops subjects, least recently used first, until the state is within its limit, and returns
// them. Subjects with open calls are kept.
func (b *peerState[O]) evict() []string { return b.evictTo(b.limit) }

func (b *peerState[O]) evictTo(limit int) []string {
	var names []string
	for at := b.recent.Back(); at != nil && b.bytes > limit; {
		s := at.Value.(*peerSubject[O])
		at = at.Prev()
		if s.calls == 0 {
			b.forget(s.name)
			names = append(names, s.name)
		}
	}
	return names
}

// sizeOf returns the size of a message in bytes.
func sizeOf(m proto.Message) uint64 { return uint64(proto.Size(m)) } //nolint:gosec // not negative
