package session

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
)

// hashBytes is how long hashes and digests are on the wire.
const hashBytes = 16

// hash identifies content by the first 16 bytes of its SHA-256.
type hash [hashBytes]byte

func hashOf(parts ...[]byte) hash {
	if len(parts) == 1 {
		sum := sha256.Sum256(parts[0])
		return hash(sum[:hashBytes])
	}
	h := sha256.New()
	for _, part := range parts {
		h.Write(part) // a hash.Hash never fails
	}
	return hash(h.Sum(make([]byte, 0, sha256.Size))[:hashBytes])
}

// entryHash returns what an entry adds to the digest of a set.
func entryHash(slot uint32, object hash) hash {
	var data [4 + hashBytes]byte
	binary.LittleEndian.PutUint32(data[:], slot)
	copy(data[4:], object[:])
	return hashOf(data[:])
}

// linkHash returns what an item adds to the digest of a list. It includes the previous item, so the
// digest depends on the order.
func linkHash(before, item hash) hash {
	var data [2 * hashBytes]byte
	copy(data[:], before[:])
	copy(data[hashBytes:], item[:])
	return hashOf(data[:])
}

// digest identifies a set or a list. It is the sum of its parts modulo 2^128. Parts can be
// subtracted, so updating a digest costs only as much as the change. The zero value is the digest
// of an empty set.
type digest struct{ low, high uint64 }

func (d digest) plus(h hash) digest {
	low, carry := bits.Add64(d.low, binary.LittleEndian.Uint64(h[:8]), 0)
	high, _ := bits.Add64(d.high, binary.LittleEndian.Uint64(h[8:]), carry)
	return digest{low, high}
}

func (d digest) minus(h hash) digest {
	low, borrow := bits.Sub64(d.low, binary.LittleEndian.Uint64(h[:8]), 0)
	high, _ := bits.Sub64(d.high, binary.LittleEndian.Uint64(h[8:]), borrow)
	return digest{low, high}
}

// wire returns the digest as messages contain it.
func (d digest) wire() []byte {
	return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(make([]byte, 0, hashBytes), d.low), d.high)
}

func parseDigest(data []byte) (digest, error) {
	if len(data) != hashBytes {
		return digest{}, fmt.Errorf("a digest of %d bytes, expected %d", len(data), hashBytes)
	}
	return digest{binary.LittleEndian.Uint64(data[:8]), binary.LittleEndian.Uint64(data[8:])}, nil
}

// is reports whether bytes from a message equal the digest.
func (d digest) is(data []byte) bool {
	got, err := parseDigest(data)
	return err == nil && got == d
}
