package engine

import (
	"testing"

	"github.com/hookloop/hookloop/engine/internal/loop/share"
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

// TestWaitsDrawFromTheBudget: the questions to slow hooks may use an eighth of the process's memory.
func TestWaitsDrawFromTheBudget(t *testing.T) {
	waits := share.NewWaits(500, waitBytes(budget.New(256<<20)))
	if waits.Take(32<<20 + 1) {
		t.Error("there is room for more than 32 MiB")
	}
	if !waits.Take(32 << 20) {
		t.Error("there is no room for 32 MiB")
	}
	if waitBytes(nil) != defaultWaitBytes {
		t.Error("without a budget there is another limit than the default")
	}
}
