package verifystream

import (
	"crypto/sha256"
	"math/big"
	"slices"
)

// hashBytes is the length of hashes and digests.
const hashBytes = 16

// hashOf returns the first 16 bytes of a SHA-256.
func hashOf(data []byte) []byte {
	sum := sha256.Sum256(data)
	return sum[:hashBytes]
}

// digestOf returns the sum of parts modulo 2^128. All numbers are little-endian.
func digestOf(parts [][]byte) []byte {
	sum := new(big.Int)
	for _, part := range parts {
		sum.Add(sum, new(big.Int).SetBytes(reversed(part)))
	}
	sum.Mod(sum, new(big.Int).Lsh(big.NewInt(1), 8*hashBytes))
	return reversed(sum.FillBytes(make([]byte, hashBytes)))
}

func reversed(data []byte) []byte {
	out := slices.Clone(data)
	slices.Reverse(out)
	return out
}

// listDigest returns the digest of a desired list, from its serialized items.
func listDigest(items [][]byte) []byte {
	previous := make([]byte, hashBytes)
	var parts [][]byte
	for _, item := range items {
		own := hashOf(item)
		parts = append(parts, hashOf(slices.Concat(previous, own)))
		previous = own
	}
	return digestOf(parts)
}
