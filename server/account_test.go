package server

import (
	"testing"

	"github.com/hookloop/hookloop/internal/budget"
)

// TestPlansHaveAShare has a pipeline shrink when it uses more than the share.
func TestPlansHaveAShare(t *testing.T) {
	b := budget.New(1200)
	var limits []int64
	a := accounts(b)(func(limit int64) { limits = append(limits, limit) })
	a.Set(100)
	a.Set(101)
	if len(limits) != 1 || limits[0] != 100 {
		t.Errorf("asked to shrink to %v, want once to 100", limits)
	}
	a.Close()
	if accounts(nil) != nil {
		t.Error("there is an account without a limit")
	}
}
