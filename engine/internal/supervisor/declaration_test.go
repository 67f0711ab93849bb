package supervisor

import (
	"testing"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/hook"
)

// TestEveryKindIsDeclared: the table of kinds has no kind that the supervisor cannot read.
func TestEveryKindIsDeclared(t *testing.T) {
	for _, k := range hook.Descriptors() {
		if _, found := v1alpha1.NewController(k.Declared); !found {
			t.Errorf("%s has no Go type", k.Declared)
		}
	}
}
