package plan

import (
	"encoding/binary"
	"hash/maphash"
	"maps"
	"math"
	"slices"

	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/internal/engine/merge"
)

var seed = maphash.MakeSeed()

// AfterWrite returns what to remember of a child after the server has answered an action that brings about a desired
// state. Dynamic apply finds in the answer's annotation what that state was.
func AfterWrite(a Action, answer *object.Object) (ConvergedAt, error) {
	body, err := answer.Map()
	if err != nil {
		return ConvergedAt{}, err
	}
	applied, recorded := a.Applied, false
	if a.Manager == "" {
		applied = asStored(answer.GVK(), lastApplied(answer))
		recorded = applied != nil
	}
	merged := merge.Apply(body, applied, applied)
	if dropped := dropped(answer, a.Manager, applied); dropped != nil && a.Manager != "" {
		dropped.Remove(merged)
		recorded = answer.LastApplied() == ""
	}
	keepOwner(merged, body, a.Owner.UID)
	s := ConvergedAt{
		Desired: a.Desired, ResourceVersion: answer.ResourceVersion(), IgnoredDiff: ignoredDiff(body, merged), Unrecorded: !recorded,
	}
	if !recorded && a.Manager != "" && a.Verb != ServerSideApply { // a lost claim: the next sync writes the record
		s.Unrecorded, s.ResourceVersion = false, ""
	}
	return s, nil
}

// ignoredDiff is a hash of the differences between an object and what an apply makes of it; 0 if there
// is none. It does not depend on the rest of the object, which others may change at any time.
func ignoredDiff(before, merged map[string]any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	differs := false
	merge.Differences(before, merged, func(path string, old, wanted any) {
		differs = true
		writeString(&h, path)
		writeValue(&h, old)
		writeValue(&h, wanted)
	})
	if !differs {
		return 0
	}
	return max(1, h.Sum64())
}

// volatile are the metadata fields that change without anybody changing the object's meaning.
var volatile = map[string]bool{"resourceVersion": true, "generation": true, "managedFields": true}

// StableHash is a hash of an object without its status and without volatile metadata. The order of
// fields does not matter. It is never 0.
func StableHash(m map[string]any) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	for _, name := range slices.Sorted(maps.Keys(m)) {
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

func withoutVolatile(metadata map[string]any) map[string]any {
	kept := maps.Clone(metadata)
	maps.DeleteFunc(kept, func(name string, _ any) bool { return volatile[name] })
	return kept
}

// writeValue writes a value in a form that no other value has: a tag, then a length or the value
// itself.
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
