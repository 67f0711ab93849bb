// Package conformance checks that docs/reference/compatibility.md names tests that exist. A row
// without a test proves nothing.
//
// It does not run these tests; "make test" runs them.
package conformance

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

var (
	named    = regexp.MustCompile("`((?:Test|Benchmark)[A-Za-z0-9]+)`")
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)[A-Za-z0-9]+)\(`)
)

// TestEveryRowHasItsTest reads the page's tables.
func TestEveryRowHasItsTest(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(cluster.Root(), "docs", "reference", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	there := tests(t)
	rows := 0
	for i, line := range strings.Split(string(page), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "|---") || strings.HasSuffix(line, "| Test |") ||
			strings.HasPrefix(line, "| Issue") {
			continue
		}
		rows++
		found := named.FindAllStringSubmatch(line, -1)
		if len(found) == 0 && !strings.HasSuffix(line, "| not yet |") {
			t.Errorf("line %d names no test: %s", i+1, line)
		}
		for _, name := range found {
			if !there[name[1]] {
				t.Errorf("line %d: there is no %s", i+1, name[1])
			}
		}
	}
	if rows < 60 {
		t.Errorf("%d rows were read, expected the whole page", rows)
	}
}

// tests returns the names of all tests and benchmarks of the module.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(cluster.Root(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (entry.Name() == ".cache" || entry.Name() == ".git" || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		for _, name := range declared.FindAllStringSubmatch(string(text), -1) {
			found[name[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
