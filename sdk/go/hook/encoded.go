package hook

import (
	"bytes"
	"hash/maphash"
)

// Encoded is a desired object in its encoded form. It is immutable, and safe for concurrent use.
// The zero value has no object; use Encode.
//
// A function that keeps Encoded objects between calls saves the reading of their JSON: a Child that
// equals the one of the last response about the parent is recognized without it.
type Encoded struct {
	data []byte
	hash uint64 // of data, by childSeed
}

// Encode encodes an object that Child.Object takes, and checks it. Later changes of the object have
// no effect.
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
