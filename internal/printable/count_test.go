package printable_test

import (
	"testing"

	"github.com/hookloop/hookloop/internal/printable"
)

func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"0 errors":   printable.Count(0, "error"),
		"1 error":    printable.Count(1, "error"),
		"2 errors":   printable.Count(2, "error"),
		"1 child":    printable.Count(1, "child", "children"),
		"3 children": printable.Count(3, "child", "children"),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
