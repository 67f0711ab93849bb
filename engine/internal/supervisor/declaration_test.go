package supervisor

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// TestEveryKindIsDeclared: the table of kinds has no kind that the supervisor cannot read.
func TestEveryKindIsDeclared(t *testing.T) {
	for _, k := range hook.Descriptors() {
		if declarations[k.ControllerKind] == nil {
			t.Errorf("%s has no function that reads its declaring objects", k.Declared)
		}
	}
}
