package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookloop/hookloop/tools/code/source"
)

// wide returns a text with as many characters.
func wide(prefix string, characters int) string {
	return prefix + strings.Repeat("é", characters-len([]rune(prefix)))
}

// TestRules plants a fault for each rule, and places that look like faults.
func TestRules(t *testing.T) {
	const doc = "// Package a is an example.\npackage a\n"
	for _, test := range []struct {
		name, path, text string
		want             []string
	}{
		{"phrase in a Go comment", "a.go", doc + "\n// f says yes.\nfunc f() {}\n", []string{`a.go:4: "says"`}},
		{"phrase in a comment after code", "a.go", doc + "var x = 1 // Whose\n", []string{`a.go:3: "Whose"`}},
		{"phrase over two lines", "a.go", doc + "\n// f is what\n// is there.\nfunc f() {}\n", []string{`a.go:4: "what is"`}},
		{"phrase in code", "a.go", doc + "var says = `says`\n", nil},
		{"phrase in a quotation", "a.go", doc + "// `says` and \"whose\"\nvar x int\n", nil},
		{"part of a word", "a.go", doc + "// essays by folks\nvar x int\n", nil},
		{"phrase in a test", "a_test.go", "package a\n// says\n", []string{`a_test.go:2: "says"`}},
		{"phrase in a docstring", "a.py", "\"\"\"A.\n\nIt says.\"\"\"\n", []string{`a.py:3: "says"`}},
		{"phrase in TypeScript", "a.ts", "/** Says */\n", []string{`a.ts:1: "Says"`}},
		{"phrase in a contract", "a.proto", "// It says.\n", []string{`a.proto:1: "says"`}},
		{"phrase in a script", "Makefile", "# It says.\nx:\n", []string{`Makefile:1: "says"`}},
		{"wide script", "a.sh", wide("x", 121) + "\n" + wide("# ", 121), nil},
		{"phrase in Markdown", "a.md", "# A\n\nIt\nsays.\n", []string{`a.md:4: "says"`}},
		{"phrase in a table", "a.md", "| it says |\n", []string{`a.md:1: "says"`}},
		{"phrase in a code block", "a.md", "```\nit says\n```\nSo it `says`.\n", nil},
		{"wide code", "a.go", doc + wide("var ", 121) + " int\n", []string{"a.go:3: 125 columns wide; at most 120 (width)"}},
		{"code of the greatest width", "a.go", doc + wide("var ", 116) + " int\n", nil},
		{"wide comment", "a.go", doc + wide("// ", 101) + "\n", []string{"a.go:3: 101 columns wide; at most 100 (comment)"}},
		{"wide comment after code", "a.go", doc + wide("var x int // ", 120) + "\n", nil},
		{"wide docstring", "a.py", "\"\"\"A.\n\n" + wide("", 101) + "\n\"\"\"\n",
			[]string{"a.py:3: 101 columns wide; at most 100 (comment)"},
		},
		{"wide Python", "a.py", wide("x = 1 ", 121), []string{"a.py:1: 121 columns wide; at most 120 (width)"}},
		{"address", "a.go", doc + "// https://example.com/" + strings.Repeat("x", 100) + "\n", nil},
		{"example's output", "a.go", doc + wide("// Output: ", 110) + "\n", nil},
		{"directive", "a.go", doc + wide("var x int //nolint:all // ", 130) + "\n", nil},
		{"wide Markdown", "a.md", wide("It ", 121), []string{"a.md:1: 121 columns wide; at most 120 (width)"}},
		{"wide table", "a.md", wide("| It ", 121), nil},
		{"wide code block", "a.md", "```\n" + wide("It ", 121) + "\n```\n", nil},
		{"function without a comment", "a.go", doc + "func F() {}\n", []string{"a.go:3: F has no comment (exported)"}},
		{"comment without the name", "a.go", doc + "// Does it.\nfunc F() {}\n",
			[]string{"a.go:4: F has a comment that does not begin with the name (exported)"},
		},
		{"comment with a longer name", "a.go", doc + "// Fs do it.\nfunc F() {}\n",
			[]string{"a.go:4: F has a comment that does not begin with the name (exported)"},
		},
		{"comment with an article", "a.go", doc + "// A T is it.\ntype T int\n", nil},
		{"method without a comment", "a.go",
			doc + "type t int\nfunc (*t) M() {}\n// T is it.\ntype T[X any] int\nfunc (*T[X]) M() {}\n",
			[]string{"a.go:7: M has no comment (exported)"},
		},
		{"conventional method", "a.go", doc + "// T is it.\ntype T int\nfunc (T) String() string { return \"\" }\n", nil},
		{"type without a comment", "a.go", doc + "type T int\n", []string{"a.go:3: T has no comment (exported)"}},
		{"type in a group", "a.go", doc + "// Types.\ntype (\n\tT int\n)\n", []string{"a.go:5: T has no comment (exported)"}},
		{"variable without a comment", "a.go", doc + "var a, V = 1, 2\n", []string{"a.go:3: V has no comment (exported)"}},
		{"group of constants", "a.go", doc + "// The ones.\nconst (\n\tA = 1\n\tB = 2\n)\n", nil},
		{"group without a comment", "a.go", doc + "const (\n\tA = 1 // is one\n\tB = 2\n)\n",
			[]string{"a.go:5: B has no comment (exported)"},
		},
		{"command", "a.go", "package main\n\nfunc F() {}\n", nil},
		{"test", "a_test.go", "package a\n\nfunc F() {}\n", nil},
		{"Python function", "sdk/a.py", "def f(\n    x,\n) -> int:\n    return x\n",
			[]string{"sdk/a.py:1: f has no docstring (exported)"},
		},
		{"Python docstring", "sdk/a.py", "class C:\n    \"\"\"It is.\"\"\"\n\n\ndef _f():\n    pass\n", nil},
		{"TypeScript function", "sdk/a.ts", "export function f() {}\n", []string{"sdk/a.ts:1: f has no comment (exported)"}},
		{"TypeScript overloads", "sdk/a.ts",
			"/** It is. */\nexport function f(): void;\nexport function f(x?: int) {}\n", nil},
		{"TypeScript elsewhere", "examples/a.ts", "export function f() {}\n", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := repository(t)
			write(t, root, test.path, test.text)
			found, err := check(t.Context(), config{root: root, below: []string{test.path}})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range found {
				text := f.String()
				if f.rule == phraseRule { // without the hint
					text = text[:strings.LastIndex(text[:strings.Index(text, `": `)+1], `"`)+1]
				}
				got = append(got, text)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("found %q, want %q", got, test.want)
			}
		})
	}
}

// repository returns a directory with an empty git repository.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	git(t, root, "init", "--quiet")
	return root
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	args = append([]string{
		"-C", root, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false",
	}, args...)
	if out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSubjects(t *testing.T) {
	for _, test := range []struct{ name, subject, want string }{
		{"good", "engine/plan: skip converged children", ""},
		{"several areas", "docs, sdk/{go,python}: rename f", ""},
		{"longest", wide("docs: ", 72), ""},
		{"too long", wide("docs: ", 73), "73 characters; at most 72"},
		{"no area", "fix it", `expected "area: what changes"`},
		{"nothing after the area", "docs:", `expected "area: what changes"`},
		{"revert", `Revert "docs: x"`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := checkSubject(test.subject); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestCommits checks the commits after a base, in a complete and in a shallow clone.
func TestCommits(t *testing.T) {
	root := repository(t)
	for _, subject := range []string{"old and bad", "new and bad", "area: the last is good"} {
		git(t, root, "commit", "--quiet", "--allow-empty", "--message", subject)
		if strings.HasPrefix(subject, "old") {
			git(t, root, "tag", "base")
		}
	}
	found, err := checkCommits(t.Context(), root, "base")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || !strings.Contains(found[0].String(), `"new and bad": expected "area: what changes" (commit)`) {
		t.Errorf("found %v, want the commit after the base", found)
	}
	shallow := t.TempDir()
	git(t, shallow, "clone", "--quiet", "--depth=1", "file://"+root, ".")
	if found, err := checkCommits(t.Context(), shallow, "base"); err != nil || len(found) > 0 {
		t.Errorf("found %v, %v in a shallow clone, want nothing", found, err)
	}
	git(t, shallow, "commit", "--quiet", "--allow-empty", "--message", "bad")
	if found, err := checkCommits(t.Context(), shallow, "base"); err != nil || len(found) != 1 {
		t.Errorf("found %v, %v after a bad commit in a shallow clone, want one", found, err)
	}
}

func TestRun(t *testing.T) {
	root := repository(t)
	git(t, root, "commit", "--quiet", "--allow-empty", "--message", "bad")
	write(t, root, "docs/a.md", "It says what is.\n")
	write(t, root, "engine/plan/b.go", "package b\n\nfunc F() {}\n")
	for _, test := range []struct {
		name string
		args []string
		want []string // parts of lines
		err  string
	}{
		{"all", nil, []string{`commit `, `docs/a.md:1: "says"`, `docs/a.md:1: "what is"`, "engine/plan/b.go:3: F"},
			"4 findings"},
		{"one rule", []string{"-rule", "exported"}, []string{"engine/plan/b.go:3: F"}, "1 findings"},
		{"one directory", []string{"docs/"}, []string{`docs/a.md:1: "says"`, `docs/a.md:1: "what is"`}, "2 findings"},
		{"clean", []string{"-rule", "width"}, nil, ""},
		{"summary", []string{"-summary"}, []string{
			"phrase    width  comment exported   commit", ".  0 0 0 0 1",
			"docs  2 0 0 0 0", "engine/plan  0 0 0 1 0", "total  2 0 0 1 1",
		}, errFound.Error()},
		{"unknown rule", []string{"-rule", "x"}, nil, "expected one of phrase, width"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			err := run(t.Context(), append([]string{"-root", root}, test.args...), &out)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if out.Len() == 0 {
				lines = nil
			}
			if len(lines) != len(test.want) {
				t.Fatalf("printed\n%s\nwant %d lines", &out, len(test.want))
			}
			for i, want := range test.want {
				if got := strings.Join(
					strings.Fields(lines[i]),
					" ",
				); !strings.Contains(
					got,
					strings.Join(strings.Fields(want), " "),
				) {
					t.Errorf("line %d: %q, want one with %q", i, got, want)
				}
			}
		})
	}
}

func TestBrokenGo(t *testing.T) {
	if _, err := checkFile(source.File{Path: "a.go", Language: "Go", Text: "package"}); err == nil {
		t.Error("no error for a file that is no Go")
	}
}

func TestParse(t *testing.T) {
	for list, want := range map[string]string{
		"says":         "expected a phrase",
		"says =>":      "expected a phrase",
		"=> reports":   "expected a phrase",
		"( => reports": "missing closing",
	} {
		if _, err := parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", list, err, want)
		}
	}
	if _, err := parse("# a comment\n\n" + "says => reports\n"); err != nil {
		t.Error(err)
	}
	if len(phrases) == 0 {
		t.Error("phrases.txt is empty")
	}
}
