package verify

import (
	"os"
	"strings"
	"testing"
)

// TestRulesAreDocumented compares the page's table with the rules.
func TestRulesAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../../docs/reference/verify.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, line := range strings.Split(string(page), "\n") {
		if strings.HasPrefix(line, "| `") && strings.Count(line, " | ") == 2 {
			rows = append(rows, line)
		}
	}
	for i, r := range Rules() {
		want := "| `" + r.ID + "` | " + string(r.Level) + " | " + r.Expected + " |"
		if i >= len(rows) || rows[i] != want {
			t.Errorf("row %d is not %s", i, want)
		}
	}
	if len(rows) != len(rules) {
		t.Errorf("the page has %d rows, want %d", len(rows), len(rules))
	}
}
