package merge_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/apimachinery/pkg/runtime"
)

const worlds = 3000

// maker makes random JSON with few different names, so that values overlap.
type maker struct{ *rand.Rand }

func newMaker(seed uint64) maker { return maker{rand.New(rand.NewPCG(seed, 1))} }

func (m maker) object(depth int) map[string]any {
	out := map[string]any{}
	for range m.IntN(4) {
		out[string(rune('a'+m.IntN(4)))] = m.value(depth - 1)
	}
	return out
}

func (m maker) value(depth int) any {
	if depth <= 0 {
		return m.scalar()
	}
	switch m.IntN(5) {
	case 0:
		return m.object(depth)
	case 1:
		return m.keyed(depth)
	case 2:
		list := make([]any, m.IntN(3))
		for i := range list {
			list[i] = m.value(depth - 1)
		}
		return list
	default:
		return m.scalar()
	}
}

// keyed returns a list of items with names, some with ports as well.
func (m maker) keyed(depth int) []any {
	list := []any{}
	for _, i := range m.Perm(4)[:m.IntN(4)] {
		item := m.object(depth - 1)
		item["name"] = fmt.Sprint("item", i)
		if m.IntN(2) == 0 {
			item["port"] = int64(m.IntN(3))
		}
		list = append(list, item)
	}
	return list
}

func (m maker) scalar() any {
	return []any{nil, true, "x", "y", int64(1), int64(1<<53 + 1), 1.5, 1.0}[m.IntN(8)]
}

// part returns a part of a value. An apply of the part does not change the value.
func (m maker) part(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for name, field := range v {
			if m.IntN(2) == 0 {
				out[name] = m.part(field)
			}
		}
		return out
	default:
		return runtime.DeepCopyJSONValue(v)
	}
}

func TestApplyTwiceIsApplyOnce(t *testing.T) {
	for seed := range uint64(worlds) {
		m := newMaker(seed)
		twiceIsOnce(t, fmt.Sprint("seed ", seed), m.object(4), m.object(4), m.object(4))
	}
}

// twiceIsOnce checks the properties of any three objects.
func twiceIsOnce(t *testing.T, name string, observed, last, desired map[string]any) {
	t.Helper()
	inputs := []any{runtime.DeepCopyJSON(observed), runtime.DeepCopyJSON(last), runtime.DeepCopyJSON(desired)}
	once := merge.Apply(observed, last, desired)
	twice := merge.Apply(once, desired, desired)
	if diff := cmp.Diff(once, twice); diff != "" {
		t.Fatalf("%s: (-once +twice)\n%s", name, diff)
	}
	for i, now := range []any{observed, last, desired} {
		if diff := cmp.Diff(inputs[i], now); diff != "" {
			t.Fatalf("%s: input %d was changed:\n%s", name, i, diff)
		}
	}
	if text := merge.Diff(observed, once); (text == "") != merge.Equal(observed, once) || len(text) > 256 {
		t.Fatalf("%s: Diff = %q, Equal = %t", name, text, merge.Equal(observed, once))
	}
}

func TestApplyOfAPartChangesNothing(t *testing.T) {
	for seed := range uint64(worlds) {
		m := newMaker(seed)
		observed := m.object(4)
		desired := m.part(observed).(map[string]any)
		last := m.part(desired).(map[string]any)
		if diff := merge.Diff(observed, merge.Apply(observed, last, desired)); diff != "" {
			t.Fatalf("seed %d: observed %v, last applied %v, desired %v: differs at %s", seed, observed, last, desired, diff)
		}
	}
}

func TestOutputSharesNothingWithInputs(t *testing.T) {
	for seed := range uint64(worlds) {
		m := newMaker(seed)
		observed := m.object(4)
		last := m.object(4)
		desired := m.object(4)
		inputs := []any{runtime.DeepCopyJSON(observed), runtime.DeepCopyJSON(last), runtime.DeepCopyJSON(desired)}
		spoil(merge.Apply(observed, last, desired))
		for i, now := range []any{observed, last, desired} {
			if diff := cmp.Diff(inputs[i], now); diff != "" {
				t.Fatalf("seed %d: a change of the output reached input %d:\n%s", seed, i, diff)
			}
		}
	}
}

// spoil changes every mutable part of a value.
func spoil(v any) {
	switch v := v.(type) {
	case map[string]any:
		for _, field := range v {
			spoil(field)
		}
		v["spoilt"] = true
	case []any:
		for i, item := range v {
			spoil(item)
			v[i] = "spoilt"
		}
	}
}

func FuzzApply(f *testing.F) {
	for _, stories := range [][]story{fields, lists, server} {
		for _, s := range stories {
			f.Add([]byte(s.observed), []byte(s.last), []byte(s.desired))
		}
	}
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		inputs := make([]map[string]any, 3)
		for i, data := range [][]byte{a, b, c} {
			m, err := object.DecodeMap(data)
			if err != nil {
				t.Skip("no JSON object")
			}
			inputs[i] = m
		}
		twiceIsOnce(t, "", inputs[0], inputs[1], inputs[2])
	})
}
