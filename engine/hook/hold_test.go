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
	if hook.Holds(ctx) || hook.Holds(t.Context()) {
		t.Error("memory is held before the first answer")
	}
	hook.Hold(ctx, release)
	if !hook.Holds(ctx) {
		t.Error("no memory is held after the first answer")
	}
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
