package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the reports in testdata; understand what changed before you commit")

// repository copies testdata/repository into a git repository with three commits; the first is
// tagged "start".
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS("testdata/repository")); err != nil {
		t.Fatal(err)
	}
	git(t, root, "init", "--quiet")
	commit(t, root, "a first commit that is older than the revision since which subjects are measured")
	git(t, root, "tag", "start")
	commit(t, root, "engine/store: a subject of exactly seventy-two characters is not too big")
	commit(t, root, "engine/store: a subject of seventy-three characters – in runes – is wide!")
	git(t, root, "rm", "--quiet", "--cached", "sdk/python/hook.py") // untracked files count
	// Neither do ignored files count, nor files that were removed from the work tree only.
	for path, text := range map[string]string{"ignored/big.go": "package ignored\n", "gone.go": "package gone\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, path), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git(t, root, "add", "gone.go")
	if err := os.Remove(filepath.Join(root, "gone.go")); err != nil {
		t.Fatal(err)
	}
	return root
}

func commit(t *testing.T, root, subject string) {
	t.Helper()
	git(t, root, "add", ".")
	git(t, root, "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false",
		"commit", "--quiet", "--allow-empty", "--message", subject)
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// TestReport compares the report on testdata/repository, as tables and as JSON, with golden files.
func TestReport(t *testing.T) {
	r, err := measure(t.Context(), config{root: repository(t), since: "start", program: "cmd/hello"})
	if err != nil {
		t.Fatal(err)
	}
	// The binary and the standard library depend on the tool chain; four packages are the
	// fixture's.
	if own := r.Program.Packages - r.Program.Standard; own != 4 || r.Program.Standard == 0 || r.Program.Bytes < 100_000 {
		t.Errorf("program: %+v, want 4 packages of its own, some of the standard library, and a binary", r.Program)
	}
	r.Program.Bytes = 1_234_567
	r.Program.Release = 890_000
	r.Program.Packages = 40
	r.Program.Standard = 36
	var tables bytes.Buffer
	if err := r.print(&tables); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.txt", tables.Bytes())
	figures, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/report.json", append(figures, '\n'))
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s: got\n%s\nwant\n%s\n\"go test -update\" rewrites it", path, got, want)
	}
}

// TestRun runs the command twice, and expects the same JSON.
func TestRun(t *testing.T) {
	root := repository(t)
	var first, second, tables bytes.Buffer
	for out, args := range map[*bytes.Buffer][]string{&first: {"-json"}, &second: {"-json"}, &tables: nil} {
		if err := run(t.Context(), append(args, "-root", root, "-program", "cmd/hello"), out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Errorf("two runs differ:\n%s\n%s", &first, &second)
	}
	var r report
	if err := json.Unmarshal(first.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if r.Commits.Count != 3 {
		t.Errorf("%d commits without -since, want 3", r.Commits.Count)
	}
	var printed bytes.Buffer
	if err := r.print(&printed); err != nil {
		t.Fatal(err)
	}
	if printed.String() != tables.String() {
		t.Errorf("the tables of the JSON's figures:\n%s\nwant\n%s", &printed, &tables)
	}
}

func TestErrors(t *testing.T) {
	root := repository(t)
	broken := repository(t)
	if err := os.WriteFile(filepath.Join(broken, "broken.go"), []byte("package"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no repository", []string{"-root", t.TempDir()}, "not a git repository"},
		{"no such revision", []string{"-root", root, "-since", "never"}, "never..HEAD"},
		{"no such program", []string{"-root", root, "-program", "cmd/never"}, "cmd/never"},
		{"not a program", []string{"-root", root, "-program", "proto"}, "no Go files"},
		{"syntax error", []string{"-root", broken}, "broken.go:1"},
		{"an argument", []string{"-root", root, "x"}, `unexpected argument "x"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := run(t.Context(), test.args, &bytes.Buffer{})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

func TestDistribution(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []int
		want  [3]int // p50, p90, max
	}{
		{"none", nil, [3]int{}},
		{"one", []int{7}, [3]int{7, 7, 7}},
		{"two", []int{2, 1}, [3]int{1, 2, 2}},
		{"ten", []int{10, 9, 8, 7, 6, 5, 4, 3, 2, 1}, [3]int{5, 9, 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var all []length
			for _, lines := range test.lines {
				all = append(all, length{"f", lines})
			}
			d := distribution("Go", all)
			if got := [3]int{d.P50, d.P90, d.Max}; got != test.want {
				t.Errorf("p50, p90, max: %v, want %v", got, test.want)
			}
		})
	}
}
