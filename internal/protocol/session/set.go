package session

import (
	"cmp"
	"slices"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"google.golang.org/genproto/googleapis/rpc/code"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
)

// storedObject is an object in the hook's state. Sets share it; only uses may change.
type storedObject struct {
	message *hookv1.ObservedObject
	hash    hash
	size    int
	// uses counts the entries that refer to the object. When it reaches 0, the state drops the
	// object.
	uses int
}

// placed holds the objects in one slot, ordered by namespace and name, and their messages in the
// same order. Both slices are immutable once they are in a set; requests share view.
type placed struct {
	objects []*storedObject
	view    []*hookv1.ObservedObject
}

// set is an observed set on the hook's side. It is immutable. Every slot is ordered and has no
// duplicates, no slot is empty, and digest covers all entries.
type set struct {
	slots  map[int]placed
	digest digest
}

func (s *set) view(slot int) []*hookv1.ObservedObject { return s.slots[slot].view }

func (s *set) size() int {
	n := 0
	for _, p := range s.slots {
		n += len(p.objects)
	}
	return n
}

// compare orders objects within a slot.
func compare(namespace, name, otherNamespace, otherName string) int {
	return cmp.Or(cmp.Compare(namespace, otherNamespace), cmp.Compare(name, otherName))
}

func (h *storedObject) compare(key *streamv1.Key) int {
	return compare(h.message.GetNamespace(), h.message.GetName(), key.GetNamespace(), key.GetName())
}

// edit is a set that is being built. It shares slots that do not change with its base.
type edit struct {
	set
	touched map[int]bool
}

func edited(base *set) *edit {
	e := &edit{set: set{slots: map[int]placed{}}, touched: map[int]bool{}}
	if base != nil {
		e.digest = base.digest
		for slot, p := range base.slots {
			e.slots[slot] = p
		}
	}
	return e
}

// own returns the lists of a slot so that they can be modified. They have capacity for more.
func (e *edit) own(slot, more int) placed {
	p := e.slots[slot]
	if e.touched[slot] {
		return p
	}
	e.touched[slot] = true
	return placed{
		objects: append(make([]*storedObject, 0, len(p.objects)+more), p.objects...),
		view:    append(make([]*hookv1.ObservedObject, 0, len(p.view)+more), p.view...),
	}
}

// remove removes an entry. If there is no such entry, the digests will not match.
func (e *edit) remove(key *streamv1.Key) {
	slot := int(key.GetSlot())
	p := e.own(slot, 0)
	if at, found := slices.BinarySearchFunc(p.objects, key, (*storedObject).compare); found {
		e.digest = e.digest.minus(entryHash(key.GetSlot(), p.objects[at].hash))
		p.objects, p.view = slices.Delete(p.objects, at, at+1), slices.Delete(p.view, at, at+1)
	}
	e.slots[slot] = p
}

// put adds an entry, or replaces the entry with the same key.
func (e *edit) put(slot uint32, o *storedObject, more int) {
	p := e.own(int(slot), more)
	key := &streamv1.Key{Namespace: o.message.GetNamespace(), Name: o.message.GetName()}
	at := len(p.objects)
	found := false
	if at > 0 && p.objects[at-1].compare(key) >= 0 {
		at, found = slices.BinarySearchFunc(p.objects, key, (*storedObject).compare)
	}
	if found {
		e.digest = e.digest.minus(entryHash(slot, p.objects[at].hash))
		p.objects[at], p.view[at] = o, o.message
	} else {
		p.objects, p.view = slices.Insert(p.objects, at, o), slices.Insert(p.view, at, o.message)
	}
	e.digest = e.digest.plus(entryHash(slot, o.hash))
	e.slots[int(slot)] = p
}

// done returns the finished set.
func (e *edit) done() *set {
	for slot := range e.touched {
		if p := e.slots[slot]; len(p.objects) == 0 {
			delete(e.slots, slot)
		} else {
			e.slots[slot] = placed{trimmed(p.objects), trimmed(p.view)}
		}
	}
	return &e.set
}

// trimmed returns a list without most of its unused capacity. A snapshot reserves room for all of
// its objects in every slot.
func trimmed[E any](list []E) []E {
	if cap(list) <= len(list)+len(list)/8+16 {
		return list
	}
	return slices.Clone(list)
}

// apply returns the set that a call describes, or a Nack if the state lacks something.
func (m *State) apply(base *set, call *streamv1.Call) (*set, *streamv1.Nack, error) {
	switch {
	case len(call.GetBase()) == 0:
		base = nil
	case base == nil:
		return nil, nack(streamv1.Nack_REASON_UNKNOWN_BASE, "nothing is held for this subject"), nil
	case !base.digest.is(call.GetBase()):
		return nil, nack(streamv1.Nack_REASON_UNKNOWN_BASE, "what is held for this subject has another digest"), nil
	}
	e := edited(base)
	sent := map[hash]*storedObject{}
	for _, key := range call.GetRemoved() {
		e.remove(key)
	}
	for _, up := range call.GetUpserts() {
		o, missing, err := m.find(up, sent)
		if missing != nil || err != nil {
			return nil, missing, err
		}
		e.put(up.GetSlot(), o, len(call.GetUpserts()))
	}
	next := e.done()
	if !next.digest.is(call.GetDigest()) {
		return nil, nack(streamv1.Nack_REASON_DIGEST_MISMATCH, "after the changes the set has another digest"), nil
	}
	return next, nil, nil
}

// find returns the object for an upsert: from the call itself, or from the state.
func (m *State) find(up *streamv1.Upsert, sent map[hash]*storedObject) (*storedObject, *streamv1.Nack, error) {
	switch content := up.GetContent().(type) {
	case *streamv1.Upsert_Object:
		h := hashOf(content.Object)
		if o := m.objects[h]; o != nil {
			return o, nil, nil
		}
		message := &hookv1.ObservedObject{}
		if err := proto.Unmarshal(content.Object, message); err != nil {
			return nil, nil, protocolError("an upsert's object is no hookloop.hook.v1.ObservedObject: %v", err)
		}
		o := &storedObject{message: message, hash: h, size: len(content.Object)}
		sent[h] = o
		return o, nil, nil
	case *streamv1.Upsert_Hash:
		if len(content.Hash) != hashBytes {
			return nil, nil, protocolError("an upsert's hash has %d bytes, expected %d", len(content.Hash), hashBytes)
		}
		h := hash(content.Hash)
		if o := cmp.Or(sent[h], m.objects[h]); o != nil {
			return o, nil, nil
		}
		return nil, nack(streamv1.Nack_REASON_UNKNOWN_OBJECT, "an object is not held that is named by its hash"), nil
	default:
		return nil, nil, protocolError("an upsert has neither object nor hash, expected one of them")
	}
}

func nack(reason streamv1.Nack_Reason, message string) *streamv1.Nack {
	c := code.Code_FAILED_PRECONDITION
	if reason == streamv1.Nack_REASON_DIGEST_MISMATCH {
		c = code.Code_DATA_LOSS
	}
	return &streamv1.Nack{Reason: reason, Status: &statuspb.Status{Code: int32(c), Message: message}}
}
