package merge_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookloop/hookloop/engine/internal/jsonmap"
	"github.com/hookloop/hookloop/engine/internal/plan/merge"
	"github.com/hookloop/hookloop/internal/heaptest"
)

func TestEqual(t *testing.T) {
	tests := []struct {
		name string
		a, b any
		want bool
	}{
		{"an integer and a float of one value", int64(1), 1.0, true},
		{"a float and an integer of one value", -3.0, int64(-3), true},
		{"an integer and a float beside it", int64(1), 1.5, false},
		{"2^53+1 and the float 2^53", int64(1<<53 + 1), float64(1 << 53), false},
		{"2^53+1 and 2^53", int64(1<<53 + 1), int64(1 << 53), false},
		{"2^62 as integer and float", int64(1 << 62), float64(1 << 62), true},
		{"the largest integer and the float 2^63", int64(1<<63 - 1), float64(1 << 63), false},
		{"the smallest integer as a float", int64(-1 << 63), float64(-1 << 63), true},
		{"a number and its text", int64(1), "1", false},
		{"null and false", nil, false, false},
		{"null and null", nil, nil, true},
		{"null and an empty object", nil, map[string]any{}, false},
		{"a text and an object", "x", map[string]any{}, false},
		{"a field that is null and one that is absent", map[string]any{"a": nil}, map[string]any{"b": nil}, false},
		{"numbers deep inside", map[string]any{"a": []any{int64(2)}}, map[string]any{"a": []any{2.0}}, true},
		{"lists of different lengths", []any{int64(1)}, []any{int64(1), nil}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := merge.Equal(test.a, test.b); got != test.want {
				t.Errorf("Equal = %t, want %t", got, test.want)
			}
		})
	}
}

func TestDiff(t *testing.T) {
	tests := []struct{ name, before, after, want string }{
		{"nothing", `{"a":1}`, `{"a":1.0}`, ""},
		{"a value", `{"spec":{"replicas":1}}`, `{"spec":{"replicas":3}}`, "spec.replicas"},
		{"a field that comes and one that goes", `{"a":1}`, `{"b":1}`, "a, b"},
		{"a null that comes", `{}`, `{"a":null}`, "a"},
		{"an item", `{"l":[{"name":"a","x":1}]}`, `{"l":[{"name":"a","x":2}]}`, "l[0].x"},
		{"a list that grows", `{"l":[1]}`, `{"l":[1,2]}`, "l"},
		{"a type", `{"a":{"b":1}}`, `{"a":[1]}`, "a"},
		{"more than four", `{}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1}`, "a, b, c, d and 2 more"},
		{"a field without a name", `{}`, `{"":1}`, `""`},
		{"a name that would break the line", `{}`, "{\"a\\nb\":1}", `"a\nb"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := merge.Diff(decode(t, test.before), decode(t, test.after)); got != test.want {
				t.Errorf("Diff = %q, want %q", got, test.want)
			}
		})
	}
}

func TestDiffShowsNoValues(t *testing.T) {
	got := merge.Diff(decode(t, `{"data":{"password":"aHVudGVyMg=="}}`),
		decode(t, `{"data":{"password":"c2VjcmV0"},"stringData":{"token":"s3cr3t"}}`))
	if want := "data.password, stringData"; got != want {
		t.Errorf("Diff = %q, want %q", got, want)
	}
}

func TestDiffIsBounded(t *testing.T) {
	after := map[string]any{}
	for i := range 9 {
		after[strings.Repeat("ü", 100)+fmt.Sprint(i)] = true
	}
	got := merge.Diff(nil, after)
	if len(got) > 256 || !utf8.ValidString(got) || !strings.HasSuffix(got, "… and 5 more") {
		t.Errorf("Diff is %d bytes: %q", len(got), got)
	}
}

// TestPathsAreSmall: a path does not keep the JSON in memory that its names were decoded from.
func TestPathsAreSmall(t *testing.T) {
	const size = 16 << 20
	before := heaptest.Used()
	paths := func() []string {
		decoded, ok := jsonmap.Decode([]byte(`{"rules":1,"text":"` + strings.Repeat("x", size) + `"}`))
		if !ok {
			t.Fatal("it is no JSON")
		}
		_, paths := merge.DiffPaths(map[string]any{"text": decoded["text"]}, decoded)
		return paths
	}()
	if after := heaptest.Used(); after > before+size/2 {
		t.Errorf("%d bytes more after a diff", after-before)
	}
	if len(paths) != 1 || paths[0] != "rules" {
		t.Errorf("the paths are %q, want rules", paths)
	}
}
