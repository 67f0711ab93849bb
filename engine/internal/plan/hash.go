package plan

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"
)

// seed makes hashes differ between processes.
var seed = maphash.MakeSeed()

// volatile are the metadata fields that change without a change of the object.
var volatile = map[string]bool{"resourceVersion": true, "generation": true, "managedFields": true}

// StableHash returns a hash of an object without its status and volatile metadata. It does not
// depend on the order of fields, and is never 0.
func StableHash(m map[string]any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	var room [mostNames]string
	for _, name := range names(room[:0], m) {
		if name == "status" {
			continue
		}
		value := m[name]
		if metadata, ok := value.(map[string]any); ok && name == "metadata" {
			value = withoutVolatile(metadata)
		}
		writeString(&h, name)
		writeValue(&h, value)
	}
	return max(1, h.Sum64())
}

// mostNames is the number of fields that most objects do not exceed; more need an allocation.
const mostNames = 16

// names appends the names of a map's fields to room, in order.
func names(room []string, m map[string]any) []string {
	for name := range m {
		room = append(room, name)
	}
	slices.Sort(room)
	return room
}

func withoutVolatile(metadata map[string]any) map[string]any {
	kept := maps.Clone(metadata)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return volatile[name] })
	return kept
}

// writeValue writes a value in a form that no other value has: a tag, then its length or the value.
func writeValue(h *maphash.Hash, v any) {
	switch v := v.(type) {
	case map[string]any:
		writeNumber(h, 'o', uint64(len(v)))
		var room [mostNames]string
		for _, name := range names(room[:0], v) {
			writeString(h, name)
			writeValue(h, v[name])
		}
	case []any:
		writeNumber(h, 'a', uint64(len(v)))
		for _, item := range v {
			writeValue(h, item)
		}
	case string:
		writeString(h, v)
	case int64:
		writeNumber(h, 'i', uint64(v)) //nolint:gosec // only the bits count
	case float64:
		writeNumber(h, 'f', math.Float64bits(v))
	case bool:
		tag := byte('-')
		if v {
			tag = '+'
		}
		writeNumber(h, tag, 0)
	default:
		writeNumber(h, 'n', 0)
	}
}

func writeString(h *maphash.Hash, s string) {
	writeNumber(h, 's', uint64(len(s)))
	_, _ = h.WriteString(s) // a hash never fails
}

func writeNumber(h *maphash.Hash, tag byte, n uint64) {
	var b [9]byte
	b[0] = tag
	binary.BigEndian.PutUint64(b[1:], n)
	_, _ = h.Write(b[:]) // a hash never fails
}
