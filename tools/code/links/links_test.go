package main

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/hookloop/hookloop/tools/code/source"
)

func TestRepository(t *testing.T) {
	page := strings.Join([]string{
		"# The `page`, in short", "## Twice", "## Twice",
		"[file](b.md), [folder](../examples), [anchor](#twice-1), [other](b.md#of-b), <https://x>",
		"[code](`x`) `[y](z.md)` [host](https://example.com/no.md)",
		"```", "[block](none.md)", "```",
		"[a](none.md) [b](b.md#none) [c](#the-page-in-short) [d](#none) ![e](none.png)",
		"[f]: none/", "",
	}, "\n")
	files := []source.File{
		{Path: "docs/a.md", Language: "Markdown", Text: page},
		{Path: "docs/b.md", Language: "Markdown", Text: "# Of [B](a.md)\n"},
		{Path: "docs/README.md", Language: "Markdown", Text: "# Map\n[a](a.md)\n"},
		{Path: "x.go", Language: "Go", Text: "// see docs/a.md\n// and docs/no/page.md\n"},
	}
	root := fstest.MapFS{"docs/a.md": {}, "docs/b.md": {}, "examples/x": {}}
	want := []string{
		"docs/a.md:9: link to none.md: no such file or folder",
		"docs/a.md:9: link to b.md#none: docs/b.md has no heading with that anchor",
		"docs/a.md:9: link to #none: docs/a.md has no heading with that anchor",
		"docs/a.md:9: link to none.png: no such file or folder",
		"docs/a.md:10: link to none/: no such file or folder",
		"x.go:2: docs/no/page.md does not exist",
		"docs/b.md:1: no link leads here from docs/README.md; expected a row in one of its tables",
	}
	wantFindings(t, checkRepository(root, files), want)
}

func TestTables(t *testing.T) {
	page := strings.Join([]string{
		"| a | b |", "|---|---|", "| 1 | 2 |", "| 1 |", "| `x|y` | 2 |", "| `x\\|y` | 2 |", "", "| a |", "|---|", "| 1 | 2 |",
		"```", "| 1 | 2 |", "| 1 |", "```", "",
	}, "\n")
	files := []source.File{{Path: "docs/README.md", Language: "Markdown", Text: page}}
	wantFindings(t, checkRepository(fstest.MapFS{}, files), []string{
		"docs/README.md:4: a table row with 1 cells, expected the 2 of the header",
		"docs/README.md:5: a table row with 3 cells, expected the 2 of the header",
		"docs/README.md:10: a table row with 2 cells, expected the 1 of the header",
	})
}

func TestSite(t *testing.T) {
	root := fstest.MapFS{
		"index.html":   {Data: []byte(`<a href="a/b.html#x"> <a href="a"> <a href="https://none"> <img src="no.png">`)},
		"a/b.html":     {Data: []byte(`<h1 id="x"> <a href="../index.html"> <a href="#y"> <a href="/index.html">`)},
		"a/index.html": {},
	}
	s, err := readSite(root)
	if err != nil {
		t.Fatal(err)
	}
	wantFindings(t, s.check(), []string{
		"a/b.html: link to #y: the page has no element with that id",
		"a/b.html: link to /index.html: expected a relative link, so that the site works in any folder",
		"index.html: link to a: a folder; expected its index.html, so that the site works from files",
		"index.html: link to no.png: no such file",
	})
}

func TestEmptySite(t *testing.T) {
	if _, err := readSite(fstest.MapFS{}); err == nil {
		t.Error("a site without pages has no error")
	}
}

// wantFindings compares the printed findings.
func wantFindings(t *testing.T, found []finding, want []string) {
	t.Helper()
	var out strings.Builder
	err := report(&out, found)
	if got := strings.Join(want, "\n") + "\n"; out.String() != got {
		t.Errorf("findings:\n%swant:\n%s", out.String(), got)
	}
	if (err != nil) != (len(want) > 0) {
		t.Errorf("err = %v for %d findings", err, len(want))
	}
}
