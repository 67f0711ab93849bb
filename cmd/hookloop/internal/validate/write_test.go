package validate

import (
	"strings"
	"testing"
)

// TestTextsOfOthers has a message with control characters and a line end: each finding is one line.
func TestTextsOfOthers(t *testing.T) {
	var out strings.Builder
	if err := (&Report{Findings: []Finding{{Severity: Error, Message: "a\x1b[2Jb\nc"}}}).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), ": error: a [2Jb c\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
