package merge_test

import (
	"encoding/json"
	"testing"

	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/engine/object"
)

func TestIncludes(t *testing.T) {
	const stored = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"u"},"spec":{"n":1,"t":"a\"}b","e":{},` +
		`"list":[{"name":"x","port":1}]}}`
	for _, c := range []struct {
		name, part string
		want       bool
	}{
		{"nothing", `{}`, true},
		{"the whole", stored, true},
		{"some fields in another order", `{"spec":{"t":"a\"}b","n":1},"kind":"X"}`, true},
		{"a list as stored", `{"spec":{"list":[{"name":"x","port":1}]}}`, true},
		{"an empty object", `{"spec":{"e":{}}}`, true},
		{"an item to which the server added a field", `{"spec":{"list":[{"name":"x"}]}}`, false},
		{"another value", `{"spec":{"n":2}}`, false},
		{"another type", `{"spec":{"n":{}}}`, false},
		{"an object for a text", `{"kind":{"a":1}}`, false},
		{"a field that is not stored", `{"spec":{"m":1}}`, false},
		{"a null", `{"spec":{"m":null}}`, false},
		{"the same text with an escape", `{"kind":"\u0058"}`, false},
		{"spaces", `{ "kind":"X"}`, false},
		{"no object", `[]`, false},
		{"no JSON", `{"kind":"X"`, false},
		{"no JSON behind it", `{"kind":"X"}}`, false},
		{"no colon", `{"kind""X"}`, false},
		{"no name", `{,}`, false},
		{"empty", ``, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := merge.Includes([]byte(stored), []byte(c.part)); got != c.want {
				t.Errorf("Includes = %t, want %t", got, c.want)
			}
		})
	}
}

// If Includes is true, an apply changes nothing. It is true for many parts.
func TestIncludedPartsChangeNothing(t *testing.T) {
	included := 0
	for seed := range uint64(worlds) {
		m := newMaker(seed)
		whole := m.object(4)
		part := m.part(whole).(map[string]any)
		if m.IntN(3) == 0 {
			part = m.object(3)
		}
		if checkIncluded(t, text(t, whole), text(t, part)) {
			included++
		}
	}
	if included < worlds/4 {
		t.Errorf("%d of %d parts were included, want more", included, worlds)
	}
}

// checkIncluded checks the answer about two texts, and returns it.
func checkIncluded(t *testing.T, whole, part []byte) bool {
	t.Helper()
	if !merge.Includes(whole, part) {
		return false
	}
	w, err := object.DecodeMap(whole)
	if err != nil {
		t.Fatal(err)
	}
	p, err := object.DecodeMap(part)
	if err != nil {
		t.Fatalf("%s includes %s, which is no object: %v", whole, part, err)
	}
	if diff := merge.Diff(w, merge.Apply(w, p, p)); diff != "" {
		t.Fatalf("%s includes %s, but an apply changes %s", whole, part, diff)
	}
	return true
}

func text(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func FuzzIncludes(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"name":"x"}]},"c":"d"}`), []byte(`{"c":"d","a":{"b":[1,{"name":"x"}]}}`))
	f.Add([]byte(`{"a":1,"a":2}`), []byte(`{"a":2}`))
	f.Fuzz(func(t *testing.T, whole, part []byte) {
		if w, err := object.DecodeMap(whole); err != nil || w == nil {
			t.Skip("Includes expects an object")
		}
		checkIncluded(t, whole, part)
	})
}
