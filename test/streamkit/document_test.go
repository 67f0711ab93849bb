package streamkit

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// TestDocument runs the program of docs/reference/stream-protocol.md and compares its output with
// the page. The dialogues that docs/reference/checking-an-sdk.md shows must exist.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "stream-protocol.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(data), "```python\n")
	program, rest, ended := strings.Cut(rest, "```\n\n```\n")
	output, _, closed := strings.Cut(rest, "```\n")
	if !found || !ended || !closed {
		t.Fatal("expected a python program, followed by its output")
	}
	got, err := exec.Command("/usr/bin/python3", "-c", program).CombinedOutput()
	if err != nil || string(got) != output {
		t.Errorf("the program prints:\n%s\n%v\nthe document has:\n%s", got, err, output)
	}
	list, err := exec.CommandContext(t.Context(), serve.Program("hookloop"), "verify-stream", "--list").Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "checking-an-sdk.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for line := range strings.Lines(string(page)) {
		if played, isLine := strings.CutPrefix(line, "ok   "); isLine {
			shown++
			if !strings.Contains(string(list), played) {
				t.Errorf("no dialogue has the line %q", line)
			}
		}
	}
	if shown < 3 {
		t.Errorf("the page shows %d dialogues, expected at least 3", shown)
	}
}
