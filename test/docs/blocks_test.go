package docs

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/test/cluster"
)

// TestBlocks finds pages with console blocks that neither run nor have a row in blocks.txt, and
// blocks of the tutorial that do not run and have no reason.
func TestBlocks(t *testing.T) {
	data, err := os.ReadFile("blocks.txt")
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if strings.HasPrefix(line, "#") || len(fields) == 0 {
			continue
		}
		if len(fields) < 3 {
			t.Errorf("blocks.txt: %q has no reason", fields[0])
		}
		reasons[fields[0]] = true
	}
	root := cluster.Root()
	err = filepath.WalkDir(filepath.Join(root, "docs"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(file) != ".md" {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		page, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		step, err := filepath.Match("docs/tutorial/[1-9]-*.md", page)
		if err != nil {
			return err
		}
		checkBlocks(t, page, string(text), step, reasons[page])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkBlocks checks the console blocks of a page, which is a step of the tutorial or has a reason.
func checkBlocks(t *testing.T, page, text string, step, reason bool) {
	t.Helper()
	for _, b := range blocks(text) {
		rest, isConsole := strings.CutPrefix(b.language, "console")
		switch {
		case !isConsole:
		case rest != "" && len(strings.TrimPrefix(rest, " not run: ")) < 5:
			t.Errorf("%s:%d: got %q; expected console, or console not run: REASON", page, b.line, b.language)
		case rest == "" && !step && !reason:
			t.Errorf("%s:%d: a console block without a test; expected a row for the page in test/docs/blocks.txt", page, b.line)
		}
	}
}

// TestProgram compiles the code of docs/tutorial/first-controller-in-go.md.
func TestProgram(t *testing.T) {
	root := cluster.Root()
	text, err := os.ReadFile(filepath.Join(root, "docs", "tutorial", "first-controller-in-go.md"))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(filepath.Join(root, ".cache"), "page-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	files := 0
	for _, b := range blocks(string(text)) {
		name, isFile := b.file()
		if !isFile {
			continue
		}
		files++
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(b.lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files != 2 {
		t.Fatalf("the page has %d files, expected main.go and main_test.go", files)
	}
	vet := exec.Command("go", "vet", ".")
	vet.Dir = dir
	if out, err := vet.CombinedOutput(); err != nil {
		t.Errorf("go vet: %v\n%s", err, out)
	}
}

func TestMatches(t *testing.T) {
	for name, c := range map[string]struct {
		want, got string
		match     bool
	}{
		"equal":        {"a b\nc", "a b\nc", true},
		"columns":      {"NAME  READY", "NAME   READY", true},
		"wildcard":     {"shop-…", "shop-5c8f", true},
		"lines":        {"a\n…\nz", "a\nb\nc\nz", true},
		"more lines":   {"a", "a\nb", false},
		"fewer lines":  {"a\nb", "a", false},
		"another line": {"a\n…", "b", false},
		"no pattern":   {"a.c", "abc", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := matches(strings.Split(c.want, "\n"), strings.Split(c.got, "\n")); got != c.match {
				t.Errorf("matches = %t, want %t", got, c.match)
			}
		})
	}
}
