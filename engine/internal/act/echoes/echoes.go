// Package echoes decodes the answer to a write and the watch event that the write causes once: the
// API server sends the same text twice. The Writer has its answers decoded here (package act), and
// the cache the objects of its watches.
//
// It is not a cache of objects: equal text is one object, whatever its resourceVersion, so that
// nothing here can be stale. It holds an object from one of the two texts to the other, for a
// moment. Echoes are safe for concurrent use. A test compares them with package object, and the
// tests of the pipeline run with them.
package echoes

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	"github.com/hookloop/hookloop/engine/object"
)

const (
	// slots is the number of objects that are held.
	slots = 1 << 10
	// maxBytes bounds the bytes of the held objects, and maxObject those of one.
	maxBytes  = 4 << 20
	maxObject = maxBytes / 16
)

// Echoes hold objects that were decoded from one of two equal texts. The zero value is empty.
type Echoes struct {
	// writing is the number of writes under way. Without one, no answer follows an event.
	writing atomic.Int64
	held    [slots]atomic.Pointer[entry]
	// bytes is the sum of the held objects' sizes, saved the number of texts that were not decoded.
	bytes, saved atomic.Int64
}

// entry is one held object. Objects of equal keys have equal texts.
type entry struct {
	key    key
	object *object.Object
}

// key identifies a text: by its length and by two hashes with different seeds, which no client can
// know.
type key struct {
	length        int
	first, second uint64
}

var firstSeed, secondSeed = maphash.MakeSeed(), maphash.MakeSeed()

func keyOf(text []byte) key {
	return key{len(text), maphash.Bytes(firstSeed, text), maphash.Bytes(secondSeed, text)}
}

// Begin notes that a write begins. The caller calls End when it has decoded the answer.
func (e *Echoes) Begin() { e.writing.Add(1) }

// End notes that a write has ended.
func (e *Echoes) End() { e.writing.Add(-1) }

// Answer decodes the answer to a write, as object.Decode does.
func (e *Echoes) Answer(text []byte) (*object.Object, error) { return e.decode(text, true) }

// Event decodes an object of a watch, as object.Decode does.
func (e *Echoes) Event(text []byte) (*object.Object, error) {
	writing := e.writing.Load() > 0
	if !writing && e.bytes.Load() == 0 {
		return object.Decode(text)
	}
	return e.decode(text, writing)
}

// decode takes the object of an equal text, or decodes the text. Then it holds the object if the
// other text may come.
func (e *Echoes) decode(text []byte, hold bool) (*object.Object, error) {
	if len(text) > maxObject {
		return object.Decode(text)
	}
	k := keyOf(bytes.TrimSpace(text))
	slot := &e.held[k.first%slots]
	if known := slot.Load(); known != nil && known.key == k {
		if slot.CompareAndSwap(known, nil) {
			e.bytes.Add(-int64(known.object.Held()))
		}
		e.saved.Add(1)
		return known.object, nil
	}
	o, err := object.Decode(text)
	if err == nil && hold {
		e.hold(slot, &entry{k, o})
	}
	return o, err
}

// hold holds an object instead of the one in its slot.
func (e *Echoes) hold(slot *atomic.Pointer[entry], added *entry) {
	size := int64(added.object.Held())
	if before := slot.Swap(added); before != nil {
		size -= int64(before.object.Held())
	}
	if e.bytes.Add(size) > maxBytes {
		e.clear()
	}
}

// clear drops all objects.
func (e *Echoes) clear() {
	for i := range e.held {
		if before := e.held[i].Swap(nil); before != nil {
			e.bytes.Add(-int64(before.object.Held()))
		}
	}
}

// Stats are figures for metrics.
type Stats struct {
	// Saved is the number of texts that were not decoded, Bytes the size of the held objects.
	Saved, Bytes int64
}

// Stats returns the present figures.
func (e *Echoes) Stats() Stats { return Stats{Saved: e.saved.Load(), Bytes: e.bytes.Load()} }
