package plan

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
)

// Settle is what to remember after the server has answered a write of the desired state with hash desired.
func Settle(desired uint64, answer *object.Object) (Settled, error) {
	body, err := answer.Map()
	if err != nil {
		return Settled{}, err
	}
	return Settled{Desired: desired, ResourceVersion: answer.ResourceVersion(), Body: StableHash(body)}, nil
}

// volatile are the metadata fields that change without anybody changing the object's meaning.
var volatile = map[string]bool{"resourceVersion": true, "generation": true, "managedFields": true}

// StableHash is a hash of an object without its status and without volatile metadata. The order of fields does not matter. It is never 0.
func StableHash(m map[string]any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		switch name {
		case "status":
			continue
		case "metadata":
			if metadata, ok := m[name].(map[string]any); ok {
				writeMetadata(&h, metadata)
				continue
			}
		}
		writeString(&h, name)
		writeValue(&h, m[name])
	}
	return max(1, h.Sum64())
}

func writeMetadata(h *maphash.Hash, metadata map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		if !volatile[name] {
			writeString(h, "metadata."+name)
			writeValue(h, metadata[name])
		}
	}
}

// writeValue writes a value in a form that no other value has: a tag, then a length or the value itself.
func writeValue(h *maphash.Hash, v any) {
	switch v := v.(type) {
	case map[string]any:
		writeNumber(h, 'o', uint64(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
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
		if v {
			writeNumber(h, 't', 1)
		} else {
			writeNumber(h, 't', 0)
		}
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
