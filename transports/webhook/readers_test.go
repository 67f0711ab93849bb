package webhook

import (
	"testing"

	"github.com/hookloop/hookloop/engine/hook"
)

// TestEveryKindHasAReader: the answers of no kind of controller are read as those of another kind.
func TestEveryKindHasAReader(t *testing.T) {
	for _, k := range hook.Descriptors() {
		if readers[k.ChildrenField] == nil {
			t.Errorf("the answers of %s have no reader", k.Declared)
		}
	}
}
