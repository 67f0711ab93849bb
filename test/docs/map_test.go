package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

// TestMap finds pages that nobody comes across: every page must be linked from the map, or from the
// list of decisions.
func TestMap(t *testing.T) {
	linked := map[string]bool{"docs/README.md": true}
	for _, list := range []string{"docs/README.md", "docs/explanation/decisions/README.md"} {
		for _, link := range regexp.MustCompile(`\]\(([^)#\s]+)`).FindAllStringSubmatch(read(t, list), -1) {
			linked[filepath.Join(filepath.Dir(list), link[1])] = true
		}
	}
	pages := tracked(t, "docs/*.md")
	if len(pages) == 0 {
		t.Fatal("git knows no pages in docs")
	}
	for _, page := range pages {
		if !linked[page] {
			t.Errorf("%s: add a row to a table of docs/README.md", page)
		}
	}
}

// TestMentions finds comments, messages and scripts that name a page of docs that does not exist.
// "make links" checks the links between pages.
func TestMentions(t *testing.T) {
	mention := regexp.MustCompile(`\bdocs/[A-Za-z0-9_/-]+\.md\b`)
	found := 0
	for _, name := range tracked(t, "*.go", "*.py", "*.ts", "*.proto", "*.sh", "*.yaml", "Makefile") {
		if strings.Contains(name, "test") || strings.HasPrefix(name, "third_party/") {
			continue // tests invent pages
		}
		for _, page := range mention.FindAllString(read(t, name), -1) {
			found++
			if _, err := os.Stat(filepath.Join(cluster.Root(), page)); err != nil {
				t.Errorf("%s names %s: %v", name, page, err)
			}
		}
	}
	if found == 0 {
		t.Error("no file names a page; the pattern is wrong")
	}
}

// tracked returns the files of the repository that match, without those that were deleted.
func tracked(t *testing.T, patterns ...string) []string {
	t.Helper()
	args := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	list := exec.CommandContext(t.Context(), "git", args...)
	list.Dir = cluster.Root()
	out, err := list.Output()
	if err != nil {
		t.Fatalf("%s: %v", list, err)
	}
	var names []string
	for name := range strings.FieldsSeq(string(out)) {
		if _, err := os.Lstat(filepath.Join(cluster.Root(), name)); err == nil {
			names = append(names, name)
		}
	}
	return names
}

// read returns the text of a file of the repository.
func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(cluster.Root(), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
