package wraptest

import (
	"slices"
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

func TestFullSetsEveryField(t *testing.T) {
	if missing := Missing(Full()); len(missing) > 0 {
		t.Errorf("Full does not set %q", missing)
	}
	missing := Missing(&hook.Opened{Address: "here"})
	if want := []string{"Hook", "Named", "Timeout", "Forget", "Close", "Probe"}; !slices.Equal(missing, want) {
		t.Errorf("got %q, expected %q", missing, want)
	}
}
