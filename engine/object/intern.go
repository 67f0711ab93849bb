package object

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// internSlots is the number of values of one type that are kept for sharing.
	internSlots = 1 << 10
	// maxInterned bounds the text of a shared value in bytes.
	maxInterned = 512
)

// interned lets objects share equal values: for example, all children of a parent have the same
// labels and owner references. It keeps the most recent value for each slot, together with its
// JSON, and is safe for concurrent use. internSlots and maxInterned limit it to less than 1 MiB of
// text.
//
// Invariant: a stored value is never changed.
type interned[T any] struct {
	slots [internSlots]atomic.Pointer[internedValue[T]]
	bytes atomic.Int64 // of the texts
}

type internedValue[T any] struct {
	text  []byte
	value T
}

// These tables are shared by objects of all kinds.
var (
	sharedLabels interned[map[string]string] // and annotations
	sharedOwners interned[*[]metav1.OwnerReference]
	sharedTexts  interned[string]
	sharedPlaces [internSlots]atomic.Pointer[place]
	placesBytes  atomic.Int64 // of the texts
)

// SharedBytes returns the size in bytes of all values that objects share. It is at most 2 MiB.
func SharedBytes() int64 {
	return sharedLabels.bytes.Load() + sharedOwners.bytes.Load() + sharedTexts.bytes.Load() + placesBytes.Load()
}

// shared returns the text of a JSON string, and shares it with earlier callers.
func shared(quoted []byte) string {
	text, _ := sharedTexts.get(quoted, func(quoted []byte) (string, bool) { return unquote(quoted), true })
	return text
}

// placeOf returns the place for a kind and a namespace. It makes one if the slot holds another.
func placeOf(gvk schema.GroupVersionKind, namespace string) *place {
	hash := maphash.String(hashSeed, namespace) ^ maphash.String(hashSeed, gvk.Kind)*31 ^
		maphash.String(hashSeed, gvk.Group)*37
	slot := &sharedPlaces[hash%internSlots]
	if known := slot.Load(); known != nil && known.namespace == namespace && known.gvk == gvk {
		return known
	}
	p := &place{gvk, namespace}
	size := p.size()
	if size > maxInterned {
		return p
	}
	if before := slot.Swap(p); before != nil {
		size -= before.size()
	}
	placesBytes.Add(int64(size))
	return p
}

// size returns the length of all texts in p.
func (p *place) size() int {
	return len(p.gvk.Group) + len(p.gvk.Version) + len(p.gvk.Kind) + len(p.namespace)
}

// get returns the value for a text. If the value is not stored, get calls decode and stores the
// result, unless decode returns false.
func (t *interned[T]) get(text []byte, decode func(text []byte) (T, bool)) (T, bool) {
	if len(text) > maxInterned {
		return decode(text)
	}
	slot := &t.slots[maphash.Bytes(hashSeed, text)%internSlots]
	if known := slot.Load(); known != nil && bytes.Equal(known.text, text) {
		return known.value, true
	}
	value, ok := decode(text)
	if ok {
		size := len(text)
		if before := slot.Swap(&internedValue[T]{bytes.Clone(text), value}); before != nil {
			size -= len(before.text)
		}
		t.bytes.Add(int64(size))
	}
	return value, ok
}
