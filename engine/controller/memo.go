package controller

import (
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/hookloop/hookloop/engine/object"
)

const (
	// memoEntries and memoBytes bound each of the two generations of a memo. The bytes are those of
	// object.Memory, which estimates high.
	memoEntries = 1_000
	memoBytes   = 8 << 20
)

// memo keeps the decoded values of the objects that were read last, so that an unchanged object is
// decoded once. Readers get copies. It does not keep an object alive: the value of an object that
// has left the cache is dropped with it. The zero value is empty. It is safe for concurrent use.
type memo struct {
	mu sync.Mutex // guards the fields below
	// recent and older are the generations: a read moves a value to recent. When recent is full it
	// becomes older, and the values without a read since then are dropped.
	recent, older map[memoKey]memoValue
	// bytes is the estimated memory of recent.
	bytes int64
	// decoded is the number of reads that had to decode.
	decoded int
}

// memoKey is an object, by its identity, as a Go type.
type memoKey struct {
	object weak.Pointer[object.Object]
	of     reflect.Type
}

// memoValue is a decoded object. It is immutable.
type memoValue struct {
	object Object
	bytes  int64
	// drop removes the value when the object is collected.
	drop runtime.Cleanup
}

// processMemo is the memo of all controllers.
var processMemo memo

// read returns a private copy of an object as a Go type.
func (m *memo) read(t reflect.Type, o *object.Object) (Object, error) {
	if m == nil {
		return decodeAs(t, o)
	}
	key := memoKey{weak.Make(o), t}
	if present := m.get(key); present != nil {
		return copyOf(present), nil
	}
	decoded, err := decodeAs(t, o)
	if err != nil {
		return nil, err
	}
	private := copyOf(decoded)
	if reflect.TypeOf(private) != t || shares(reflect.ValueOf(decoded), reflect.ValueOf(private)) {
		return decoded, nil // the type's copies are not private
	}
	m.put(key, o, decoded)
	return private, nil
}

// copyOf returns a copy of a decoded object; nil if the type makes another one.
func copyOf(o Object) Object {
	copied, _ := o.DeepCopyObject().(Object)
	return copied
}

// get returns the value of a key; nil if there is none.
func (m *memo) get(key memoKey) Object {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.recent[key]; ok {
		return v.object
	}
	v, ok := m.older[key]
	if !ok {
		m.decoded++
		return nil
	}
	delete(m.older, key)
	m.add(key, v)
	return v.object
}

// put keeps the value of an object.
func (m *memo) put(key memoKey, o *object.Object, decoded Object) {
	bytes := object.Memory(o.Raw(), memoBytes)
	if bytes > memoBytes/8 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.recent[key]; !ok {
		m.add(key, memoValue{decoded, bytes, runtime.AddCleanup(o, m.remove, key)})
	}
}

// add adds a value to the recent ones. The caller holds mu.
func (m *memo) add(key memoKey, v memoValue) {
	if m.recent == nil || len(m.recent) >= memoEntries || m.bytes+v.bytes > memoBytes {
		for _, unread := range m.older {
			unread.drop.Stop()
		}
		m.older = m.recent
		m.recent = map[memoKey]memoValue{}
		m.bytes = 0
	}
	m.recent[key] = v
	m.bytes += v.bytes
}

// remove drops the value of an object that was collected.
func (m *memo) remove(key memoKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if v, ok := m.recent[key]; ok {
		m.bytes -= v.bytes
	}
	delete(m.recent, key)
	delete(m.older, key)
}

// size is the number of values.
func (m *memo) size() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.recent) + len(m.older)
}
