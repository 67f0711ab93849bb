package object

import (
	"bytes"
	"encoding/binary"
	"iter"
	"strings"
	"sync"
)

const (
	// window is the number of bytes that must be equal for a copy, and stride the distance of the
	// places of the base that are looked up.
	window, stride = 8, 4
	// maxPlaces bounds the places of a base that are looked up; in a larger base, text beyond them is
	// found less often.
	maxPlaces = 1 << 14
)

// places maps the hash of each window of the base to its index plus one.
type places struct{ at [maxPlaces]uint32 }

// placesPool reuses the tables, because they are larger than most objects.
var placesPool = sync.Pool{New: func() any { return new(places) }}

// appendPacked appends text in a form that refers to base where both are equal, because the
// last-applied state of an object mostly repeats its body. The form is the length of text, then for
// each part: the number of new bytes, the new bytes, the number of bytes to copy from base, and the
// index in base. Use unpack to read it.
func appendPacked(packed, base, text []byte) []byte {
	size := 1 << 8
	for size < maxPlaces && size < len(base)/stride {
		size *= 2
	}
	p := placesPool.Get().(*places)
	defer placesPool.Put(p)
	table := p.at[:size]
	clear(table)
	for i := 0; i+window <= len(base); i += stride {
		table[slot(binary.LittleEndian.Uint64(base[i:]), size)] = uint32(i) + 1
	}
	packed = binary.AppendUvarint(packed, uint64(len(text)))
	own := 0 // the bytes before it are packed
	for i := 0; i+window <= len(text); {
		from := int(table[slot(binary.LittleEndian.Uint64(text[i:]), size)]) - 1
		n := 0
		if from >= 0 {
			n = common(base[from:], text[i:])
		}
		if n < window {
			i++
			continue
		}
		for i > own && from > 0 && text[i-1] == base[from-1] {
			i--
			from--
			n++
		}
		packed = appendOwn(packed, text[own:i])
		packed = binary.AppendUvarint(binary.AppendUvarint(packed, uint64(n)), uint64(from)) //nolint:gosec // not negative
		i += n
		own = i
	}
	return appendOwn(packed, text[own:])
}

func appendOwn(packed, own []byte) []byte {
	return append(binary.AppendUvarint(packed, uint64(len(own))), own...)
}

func slot(word uint64, size int) int {
	return int(word * 0x9E3779B185EBCA87 >> 40 & uint64(size-1)) //nolint:gosec // less than size
}

// common returns the length of the common prefix of two texts.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// unpack returns the text that appendPacked packed with the same base.
func unpack(base, packed []byte) string {
	length, packed := uvarint(packed)
	var text strings.Builder
	text.Grow(length)
	for part := range parts(base, packed) {
		text.Write(part)
	}
	return text.String()
}

// isPacked reports whether packed holds text. It does not allocate.
func isPacked(base, packed, text []byte) bool {
	length, packed := uvarint(packed)
	if length != len(text) {
		return false
	}
	for part := range parts(base, packed) {
		if !bytes.HasPrefix(text, part) {
			return false
		}
		text = text[len(part):]
	}
	return true
}

// parts yields the parts of a packed text. packed must begin after the length.
func parts(base, packed []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(packed) > 0 {
			var own, n, from int
			own, packed = uvarint(packed)
			if !yield(packed[:own]) || len(packed) == own {
				return
			}
			n, packed = uvarint(packed[own:])
			from, packed = uvarint(packed)
			if !yield(base[from : from+n]) {
				return
			}
		}
	}
}

func uvarint(data []byte) (int, []byte) {
	v, n := binary.Uvarint(data)
	return int(v), data[n:] //nolint:gosec // written by appendPacked
}
