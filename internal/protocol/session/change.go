package session

import (
	"cmp"
	"fmt"
	"slices"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
)

// change holds a new set and how it differs from the set that the hook holds.
type change[O Observed] struct {
	// slots holds the new set, except for replaced.
	slots    map[uint32][]entry[O]
	replaced []replacement[O]
	digest   digest
	size     int
	removed  []*streamv1.Key
	upserts  []*streamv1.Upsert
	fresh    map[hash]*peerObject[O] // objects that the hook lacks
	sent     map[hash]bool           // hashes of objects in the change
	naming   naming
	err      error
}

// replacement is an entry that takes the place of another entry with the same name.
type replacement[O Observed] struct {
	slot  uint32
	place int
	entry entry[O]
}

// naming decides which objects a change refers to by hash instead of sending them.
type naming struct {
	hashes bool // the hook can find objects by hash
	known  bool // refer to objects that the hook holds, not only to those in this change
}

// compute returns how base changes into the set in these slots. If base is nil, the change is a
// snapshot.
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

// slot adds the changes in one slot and returns the new entries. It returns the old slice if no
// entry, or only a few, changed. Equal beginnings and ends of the lists are compared by identity
// only.
func (b *peerState[O]) slot(c *change[O], slot uint32, before []entry[O], objects []O) []entry[O] {
	head, tail := agreement(before, objects)
	if head == len(before) && head == len(objects) {
		return before
	}
	if !sorted(objects[max(0, head-1):min(len(objects), len(objects)-tail+1)]) {
		objects = ordered(objects)
		head, tail = agreement(before, objects)
	}
	if b.replace(c, slot, before, objects, head, tail) {
		return before
	}
	after := append(make([]entry[O], 0, len(objects)), before[:head]...)
	old := before[head : len(before)-tail]
	fresh := objects[head : len(objects)-tail]
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
				after = append(after, old[0])
				old = old[1:]
				fresh = fresh[1:]
				continue
			}
			replaced = old[0].known
			old = old[1:]
		}
		k := b.lookup(c, fresh[0])
		b.put(c, slot, replaced, k)
		after = append(after, entry[O]{fresh[0], k})
		fresh = fresh[1:]
	}
	return append(after, before[len(before)-tail:]...)
}

// maxReplaced limits how many entries of a slot are replaced without copying the others.
const maxReplaced = 64

// replace adds the changes in a slot if both lists have the same names and only a few objects
// differ between the equal ends. Otherwise it returns false.
func (b *peerState[O]) replace(
	c *change[O], slot uint32, before []entry[O], objects []O, head, tail int,
) bool {
	if len(before) != len(objects) {
		return false
	}
	var places []int
	for i := head; i < len(objects)-tail; i++ {
		if before[i].object == objects[i] {
			continue
		}
		if len(places) == maxReplaced || compareObserved(before[i].object, objects[i]) != 0 {
			return false
		}
		places = append(places, i)
	}
	for _, i := range places {
		k := b.lookup(c, objects[i])
		b.put(c, slot, before[i].known, k)
		c.replaced = append(c.replaced, replacement[O]{slot, i, entry[O]{objects[i], k}})
	}
	return true
}

// agreement returns how many entries are equal at the beginnings of two lists, and how many at the
// ends of what remains.
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

// ordered sorts objects by namespace and name, and removes duplicates.
func ordered[O Observed](objects []O) []O {
	out := slices.SortedStableFunc(slices.Values(objects), compareObserved[O])
	return slices.CompactFunc(out, func(a, b O) bool { return compareObserved(a, b) == 0 })
}

// lookup returns the peer object for an object. Each object is encoded and hashed only once.
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

// put adds an object that is new at its place. If the content is equal, this is no change.
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
