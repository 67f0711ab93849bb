// Package storytest runs stories: files of testdata in the format txtar that begin with a sentence
// about a situation, and have its inputs and the expected result as sections.
//
// It is for tests of pure packages; each of them reads its own sections. It is not safe for
// concurrent use. The stories of packages plan and mapping test it.
package storytest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "rewrite the results in testdata; understand what changed before you commit")

// Run runs the stories in testdata as subtests. It compares the section of the result with the text
// that play returns, or replaces the section if the flag -update is set.
func Run(t *testing.T, result string, play func(*testing.T, *txtar.Archive) string) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, archive)
			if *update {
				setSection(archive, result, got)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(Section(archive, result), got); diff != "" {
				t.Errorf("%s(-want +got):\n%s", archive.Comment, diff)
			}
		})
	}
}

// Section returns the text of a section; empty if the story does not have it.
func Section(archive *txtar.Archive, name string) string {
	for _, f := range archive.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

func setSection(archive *txtar.Archive, name, text string) {
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			archive.Files[i].Data = []byte(text)
			return
		}
	}
	archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(text)})
}
