package hook_test

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

func TestHold(t *testing.T) {
	released := 0
	release := func() { released++ }
	hook.Hold(t.Context(), release)
	if released != 1 {
		t.Error("without a sync it is not released at once")
	}
	ctx, end := hook.Holding(t.Context())
	hook.Hold(ctx, release)
	hook.Hold(ctx, release)
	if released != 1 {
		t.Error("it is released before the end of the sync")
	}
	end()
	end()
	if released != 3 {
		t.Errorf("%d releases after the end of the sync, want 3", released)
	}
	hook.Hold(ctx, release)
	if released != 4 {
		t.Error("after the end of the sync it is not released at once")
	}
}
