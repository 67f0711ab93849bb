package plan_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hookloop/hookloop/engine/internal/plan"
)

func TestPatch(t *testing.T) {
	a := "a"
	b := "b"
	present := map[string]string{"same": "a", "other": "a", "unwanted": "a", "foreign": "a"}
	got := plan.Patch(present, map[string]*string{"same": &a, "other": &b, "unwanted": nil, "new": &a, "absent": nil})
	if diff := cmp.Diff(map[string]*string{"other": &b, "unwanted": nil, "new": &a}, got); diff != "" {
		t.Errorf("Patch (-want +got):\n%s", diff)
	}
	if got := plan.Patch(present, map[string]*string{"same": &a, "absent": nil}); got != nil {
		t.Errorf("Patch of what is there = %v, want nil", got)
	}
}
