package observe

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// TestEveryKindHasAShape: the table of kinds has no kind that cannot be synced.
func TestEveryKindHasAShape(t *testing.T) {
	for _, k := range hook.Descriptors() {
		row := kinds[k.ControllerKind]
		if row.shape == nil || row.finalizerPrefix == "" {
			t.Errorf("%s has no shape", k.Declared)
		}
	}
}
