package printable_test

import (
	"testing"

	"github.com/hookloop/hookloop/internal/printable"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                "plain",
		"\x1b[31mred\n\u202ex": " [31mred  x",
		"äöüäöüäöüäöüä":        "äöüäöüäöüäöü…",
	} {
		if got := printable.Text(text, 12); got != want {
			t.Errorf("Text(%q) = %q, want %q", text, got, want)
		}
	}
}
