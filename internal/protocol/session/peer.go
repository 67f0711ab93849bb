package session

import (
	"cmp"
	"container/list"
	"fmt"
	"slices"

	hookv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/stream/v1"
	"google.golang.org/protobuf/proto"
)

// Observed is an object as the engine's side has it: equal values stand for equal content, so that
// a set is compared without looking into its objects.
type Observed interface {
	comparable
	Namespace() string
	Name() string
}

// Slot is the objects of one slot, in the order of their namespaces and names.
type Slot[O Observed] struct {
	Slot    uint32
	Objects []O
}

// entryBytes is about what the engine keeps for one entry of a set.
const entryBytes = 128

// beliefs are what an engine believes that a hook holds.
type peerState[O Observed] struct {
	encode   func(O) *hookv1.Object
	limit    int
	bytes    int // of entries, of the objects, each once, and of the last answers
	subjects map[string]*peerSubject[O]
	recent   list.List // of *belief[O], the one used last in front
	objects  map[O]*peerObject[O]
	hashes   map[hash]*peerObject[O]
}

// belief is about one subject.
type peerSubject[O Observed] struct {
	name   string
	slots  map[uint32][]entry[O]
	digest digest
	size   int // entries
	list   *itemList
	calls  int
	place  *list.Element
}

// entry is an object at its place.
type entry[O Observed] struct {
	object O
	known  *peerObject[O]
}

// known is an object that the hook holds; raw is there only until it is sent. The object stays in
// memory as long as it is known, whether or not anyone else has it: its size, about that of its
// message, counts.
type peerObject[O Observed] struct {
	first O
	hash  hash
	size  int
	uses  int
	raw   []byte
}

func newPeerState[O Observed](encode func(O) *hookv1.Object, limit int) *peerState[O] {
	return &peerState[O]{
		encode:   encode,
		limit:    limit,
		subjects: map[string]*peerSubject[O]{},
		objects:  map[O]*peerObject[O]{},
		hashes:   map[hash]*peerObject[O]{},
	}
}

// change is how a set differs from the one that the hook is believed to hold, and what it is then.
type change[O Observed] struct {
	slots   map[uint32][]entry[O]
	digest  digest
	size    int
	removed []*streamv1.Key
	upserts []*streamv1.Upsert
	fresh   map[hash]*peerObject[O] // objects that the hook is not known to hold
	sent    map[hash]bool           // objects that come with the change
	naming  naming
	err     error
}

// naming decides which objects a change names by hash instead of sending them.
type naming struct {
	hashes bool // the hook finds objects by hash
	known  bool // objects that the hook is known to hold, too; otherwise only those of the same change
}

// compute works out a change. Without a base everything is new.
func (b *peerState[O]) compute(base *peerSubject[O], slots []Slot[O], n naming) *change[O] {
	c := &change[O]{
		slots:  make(map[uint32][]entry[O], len(slots)),
		fresh:  map[hash]*peerObject[O]{},
		sent:   map[hash]bool{},
		naming: n,
	}
	if base != nil {
		c.digest = base.digest
	}
	for _, s := range slots {
		var before []entry[O]
		if base != nil {
			before = base.slots[s.Slot]
		}
		c.slots[s.Slot] = b.slot(c, s.Slot, before, s.Objects)
		c.size += len(c.slots[s.Slot])
	}
	if base != nil {
		for slot, entries := range base.slots {
			if _, stays := c.slots[slot]; !stays {
				b.slot(c, slot, entries, nil)
			}
		}
	}
	return c
}

// slot compares one slot in the order of names, and returns what it holds afterwards: the same
// slice where nothing changed. Where the lists agree, objects are compared by identity alone.
func (b *peerState[O]) slot(c *change[O], slot uint32, before []entry[O], objects []O) []entry[O] {
	head, tail := agreement(before, objects)
	if head == len(before) && head == len(objects) {
		return before
	}
	if !sorted(objects[max(0, head-1):min(len(objects), len(objects)-tail+1)]) {
		objects = ordered(objects)
		head, tail = agreement(before, objects)
	}
	after := append(make([]entry[O], 0, len(objects)), before[:head]...)
	old, fresh := before[head:len(before)-tail], objects[head:len(objects)-tail]
	for len(old) > 0 || len(fresh) > 0 {
		order := 0
		switch {
		case len(old) == 0:
			order = 1
		case len(fresh) == 0:
			order = -1
		default:
			order = compareObserved(old[0].object, fresh[0])
		}
		if order < 0 {
			c.remove(slot, old[0])
			old = old[1:]
			continue
		}
		var replaced *peerObject[O]
		if order == 0 {
			if old[0].object == fresh[0] {
				after, old, fresh = append(after, old[0]), old[1:], fresh[1:]
				continue
			}
			replaced, old = old[0].known, old[1:]
		}
		k := b.lookup(c, fresh[0])
		b.put(c, slot, replaced, k)
		after, fresh = append(after, entry[O]{fresh[0], k}), fresh[1:]
	}
	return append(after, before[len(before)-tail:]...)
}

// agreement is how many entries agree at the beginnings of two lists, and at the ends of what is
// left.
func agreement[O Observed](before []entry[O], objects []O) (head, tail int) {
	shorter := min(len(before), len(objects))
	for head < shorter && before[head].object == objects[head] {
		head++
	}
	for tail < shorter-head && before[len(before)-1-tail].object == objects[len(objects)-1-tail] {
		tail++
	}
	return head, tail
}

func sorted[O Observed](objects []O) bool {
	for i := 1; i < len(objects); i++ {
		if compareObserved(objects[i-1], objects[i]) >= 0 {
			return false
		}
	}
	return true
}

func compareObserved[O Observed](a, b O) int {
	return compare(a.Namespace(), a.Name(), b.Namespace(), b.Name())
}

// ordered is the objects in the order of their names, each name once.
func ordered[O Observed](objects []O) []O {
	out := slices.SortedStableFunc(slices.Values(objects), compareObserved[O])
	return slices.CompactFunc(out, func(a, b O) bool { return compareObserved(a, b) == 0 })
}

// lookup is what is known of an object; it is written and hashed once.
func (b *peerState[O]) lookup(c *change[O], o O) *peerObject[O] {
	if k := b.objects[o]; k != nil {
		return k
	}
	raw := b.write(c, o)
	h := hashOf(raw)
	k := cmp.Or(b.hashes[h], c.fresh[h])
	if k == nil {
		k = &peerObject[O]{first: o, hash: h, size: len(raw), raw: raw}
		c.fresh[h] = k
	}
	return k
}

func (b *peerState[O]) write(c *change[O], o O) []byte {
	raw, err := canonical.Marshal(b.encode(o))
	if err != nil {
		c.err = fmt.Errorf("%s/%s: %w", o.Namespace(), o.Name(), err)
	}
	return raw
}

func (c *change[O]) remove(slot uint32, e entry[O]) {
	c.digest = c.digest.minus(entryHash(slot, e.known.hash))
	c.removed = append(c.removed, &streamv1.Key{Slot: slot, Namespace: e.object.Namespace(), Name: e.object.Name()})
}

// put notes an object that is new at its place. One with the same content as before changes
// nothing.
func (b *peerState[O]) put(c *change[O], slot uint32, replaced, k *peerObject[O]) {
	if replaced == k {
		return
	}
	if replaced != nil {
		c.digest = c.digest.minus(entryHash(slot, replaced.hash))
	}
	c.digest = c.digest.plus(entryHash(slot, k.hash))
	up := &streamv1.Upsert{Slot: slot}
	switch {
	case c.naming.hashes && (c.sent[k.hash] || k.uses > 0 && c.naming.known):
		up.Content = &streamv1.Upsert_Hash{Hash: k.hash[:]}
	case k.raw != nil:
		up.Content = &streamv1.Upsert_Object{Object: k.raw}
	default:
		up.Content = &streamv1.Upsert_Object{Object: b.write(c, k.first)}
	}
	c.sent[k.hash] = true
	c.upserts = append(c.upserts, up)
}

// commit makes the result of a change what is believed.
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
	b.use(before, c.slots, -1)
	b.bytes += (c.size - s.size) * entryBytes
	s.slots, s.digest, s.size = c.slots, c.digest, c.size
	return s
}

// use counts the objects of slots, except where they are the other's own.
func (b *peerState[O]) use(slots, other map[uint32][]entry[O], by int) {
	for slot, entries := range slots {
		if o := other[slot]; len(o) == len(entries) && len(o) > 0 && &o[0] == &entries[0] {
			continue
		}
		for _, e := range entries {
			b.count(e.known, by)
		}
	}
}

func (b *peerState[O]) count(k *peerObject[O], by int) {
	if k.uses == 0 {
		b.objects[k.first], b.hashes[k.hash] = k, k
		b.bytes += k.size
		k.raw = nil
	}
	if k.uses += by; k.uses == 0 {
		b.bytes -= k.size
		delete(b.objects, k.first)
		delete(b.hashes, k.hash)
	}
}

// answered makes a list the last answer about a subject, if the subject is still believed in.
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

// clear forgets all subjects.
func (b *peerState[O]) clear() {
	for name := range b.subjects {
		b.forget(name)
	}
}

// evict forgets what was used longest ago until the limit is kept, and names it. Subjects with
// calls under way stay.
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

// size of a message in bytes.
func sizeOf(m proto.Message) uint64 { return uint64(proto.Size(m)) } //nolint:gosec // not negative
