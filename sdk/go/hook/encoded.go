package hook

import (
	"bytes"
	"hash/maphash"
)

// Encoded is a desired object that is already encoded. Use [Encode] to make one, and set it as
// [Child].Object. It is immutable and safe for concurrent use.
//
// Keep Encoded objects between calls if they seldom change: the SDK recognizes a child that equals
// the one in the last response without reading its JSON.
type Encoded struct {
	data []byte
	hash uint64 // of data, with childSeed
}

// Encode encodes an object for [Child].Object and returns an error if a required field is missing.
// If you modify the object later, the result does not change.
func Encode(object any) (*Encoded, error) {
	data, err := encodeDesired(object)
	if err != nil {
		return nil, err
	}
	data = bytes.Clone(data)
	return &Encoded{data: data, hash: maphash.Bytes(childSeed, data)}, nil
}

// MarshalJSON implements json.Marshaler.
func (e *Encoded) MarshalJSON() ([]byte, error) {
	if e == nil || e.data == nil {
		return []byte("null"), nil
	}
	return bytes.Clone(e.data), nil
}
