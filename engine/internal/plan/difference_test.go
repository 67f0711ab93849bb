package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFindDifference(t *testing.T) {
	before := map[string]any{"spec": map[string]any{"a": int64(1), "b": map[string]any{"c": "x"}, "bc": "same"}}
	after := map[string]any{"spec": map[string]any{"a": int64(2), "b": map[string]any{"c": "y"}, "bc": "same"}}
	tests := []struct {
		path  string
		want  Difference
		found bool
	}{
		{"spec.a", Difference{"spec.a", int64(1), int64(2)}, true},
		{"spec.b", Difference{"spec.b.c", "x", "y"}, true},
		{"spec", Difference{"spec.a", int64(1), int64(2)}, true},
		{"spec.bc", Difference{}, false},
		{"status", Difference{}, false},
	}
	for _, test := range tests {
		got, found := FindDifference(before, after, test.path)
		if diff := cmp.Diff(test.want, got); diff != "" || found != test.found {
			t.Errorf("%s: found %v, difference (-want +got):\n%s", test.path, found, diff)
		}
	}
}
