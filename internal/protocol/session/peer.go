package session

import (
	"container/list"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/protobuf/proto"
)

// Observed is an object of the engine. Equal values have equal content, so sets are compared
// without decoding their objects.
type Observed interface {
	comparable
	Namespace() string
	Name() string
}

// Slot is the objects of one slot, ordered by namespace and name.
type Slot[O Observed] struct {
	Slot    uint32
	Objects []O
}

// entryBytes is the approximate memory of one entry of a set in the peer state.
const entryBytes = 128

// peerState is the state that the engine assumes the hook holds.
type peerState[O Observed] struct {
	encode   func(O) *hookv1.ObservedObject
	limit    int
	bytes    int // entries, distinct objects, and last answers
	subjects map[string]*peerSubject[O]
	recent   list.List // of *peerSubject[O], most recently used first
	objects  map[O]*peerObject[O]
	hashes   map[hash]*peerObject[O]
}

// peerSubject is the assumed state of one subject.
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

// peerObject is an object that the hook holds. raw is set only until the engine sends it. The
// object stays in memory, so its size counts, approximated by the size of its message.
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

// commit stores the result of a change as the state of a subject.
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

// use changes the reference counts of the objects of some slots, except of those at the ends of a
// slot that both maps share.
func (b *peerState[O]) use(slots, other map[uint32][]entry[O], by int) {
	for slot, entries := range slots {
		for _, e := range different(entries, other[slot]) {
			b.count(e.known, by)
		}
	}
}

// different returns the elements of a list between those that it shares with another list at the
// beginnings and at the ends. All elements that it leaves out are in the other list, too.
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

// answered stores the list of the last answer about a subject, if the subject still exists.
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

// evict drops the least recently used subjects until the state is within its limit, and returns
// them. It keeps subjects with open calls.
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
