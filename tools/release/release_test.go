package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/modfile"
)

// TestVersions checks that all files of the repository have one version, and that another one in
// any of them is reported with its file and line.
func TestVersions(t *testing.T) {
	const root = "../.."
	v, err := readVersion(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := checkVersion(root, v); err != nil {
		t.Fatal(err)
	}
	copied := t.TempDir()
	for _, p := range append(places, place{path: versionFile}) {
		copyFile(t, filepath.Join(root, p.path), filepath.Join(copied, p.path))
	}
	if err := checkVersion(copied, "9.9.9"); err == nil || strings.Count(err.Error(), "expected") < len(places) {
		t.Errorf("check of 9.9.9 = %v, expected a line for each of %d places", err, len(places))
	} else if !strings.Contains(err.Error(), "sdk/python/pyproject.toml:7: got version "+v.python()+", expected 9.9.9") {
		t.Errorf("check of 9.9.9 = %v, expected file and line", err)
	}
	if err := setVersion(copied, "9.9.9-rc.1"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		versionFile:                               "9.9.9-rc.1\n",
		"sdk/python/pyproject.toml":               `version = "9.9.9rc1"`,
		"sdk/typescript/package.json":             `"version": "9.9.9-rc.1"`,
		"manifests/helm/hookloop/Chart.yaml":      "appVersion: v9.9.9-rc.1",
		"manifests/production/kustomization.yaml": "newTag: v9.9.9-rc.1",
	} {
		if text := readText(t, filepath.Join(copied, name)); !strings.Contains(text, want) {
			t.Errorf("%s does not have %q:\n%s", name, want, text)
		}
	}
	err = setVersion(copied, "v9.9")
	if err == nil || !strings.Contains(err.Error(), `got "v9.9", expected a version such as`) {
		t.Errorf("set v9.9 = %v, expected an error", err)
	}
}

// TestUncommitted checks that a release refuses a work tree with changes.
func TestUncommitted(t *testing.T) {
	root := t.TempDir()
	for _, p := range append(places, place{path: versionFile}) {
		copyFile(t, filepath.Join("..", "..", p.path), filepath.Join(root, p.path))
	}
	if _, err := command(t.Context(), root, os.Environ(), "git", "init", "--quiet"); err != nil {
		t.Fatal(err)
	}
	err := run(t.Context(), []string{"-root", root, "-out", t.TempDir()}, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "got changes without a commit") {
		t.Errorf("release = %v, expected an error about changes", err)
	}
}

func TestStamp(t *testing.T) {
	r := &release{version: "1.2.3"}
	parse := func(text string) *modfile.File {
		file, err := modfile.Parse("go.mod", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	const text = `module github.com/hookloop/hookloop

require github.com/hookloop/hookloop/sdk/go v0.0.0

replace github.com/hookloop/hookloop/sdk/go => ./sdk/go
`
	file := parse(text)
	if err := r.stamp(file, true); err != nil {
		t.Fatal(err)
	}
	got, err := file.Format()
	if err != nil {
		t.Fatal(err)
	}
	const want = "module github.com/hookloop/hookloop\n\nrequire github.com/hookloop/hookloop/sdk/go v1.2.3\n"
	if string(got) != want {
		t.Errorf("stamped %s, want %s", got, want)
	}
	err = r.stamp(parse(text+"\nreplace example.com/a => ./a\n"), true)
	if err == nil || !strings.Contains(err.Error(), "replaces example.com/a") {
		t.Errorf("stamp = %v, expected an error about example.com/a", err)
	}
	if err := r.stamp(parse(text+"\nreplace example.com/a => ./a\n"), false); err != nil {
		t.Errorf("stamp of a module that is not published: %v", err)
	}
}

// TestArchive checks that an archive's bytes depend on its content only.
func TestArchive(t *testing.T) {
	entries := []entry{{"LICENSE", 0o644, []byte("text")}, {"hookloop", 0o755, []byte("program")}}
	dir := t.TempDir()
	when := time.Unix(1e9, 0)
	var written [2][]byte
	for i := range written {
		path := filepath.Join(dir, string(rune('a'+i)))
		if err := writeArchive(path, when, entries); err != nil {
			t.Fatal(err)
		}
		written[i] = []byte(readText(t, path))
	}
	if !bytes.Equal(written[0], written[1]) {
		t.Error("two archives of the same files differ")
	}
	got, err := readArchive(filepath.Join(dir, "a"))
	if err != nil || len(got) != 2 || got[1].name != "hookloop" || string(got[1].data) != "program" {
		t.Errorf("read %v, %v", got, err)
	}
}

// TestGoSum checks that the lines of go.sum are in the order of "go mod tidy".
func TestGoSum(t *testing.T) {
	path := filepath.Join(t.TempDir(), "go.sum")
	if err := writeFile(path, []byte("example.com/a v1.0.0 h1:a\nexample.com/z v1.0.0 h1:z\n")); err != nil {
		t.Fatal(err)
	}
	sums := []string{"example.com/m v1.0.0 h1:m\n", "example.com/m v1.0.0/go.mod h1:n\n", "example.com/o v1.0.0 h1:o\n"}
	if err := addSums(path, "require example.com/m v1.0.0\n", sums); err != nil {
		t.Fatal(err)
	}
	want := "example.com/a v1.0.0 h1:a\n" + sums[0] + sums[1] + "example.com/z v1.0.0 h1:z\n"
	if got := readText(t, path); got != want {
		t.Errorf("go.sum is\n%swant\n%s", got, want)
	}
}

func TestCommandFails(t *testing.T) {
	_, err := command(context.Background(), ".", os.Environ(), "sh", "-c", "echo why >&2; exit 3")
	if err == nil || !strings.Contains(err.Error(), "exit status 3\nwhy") {
		t.Errorf("command = %v, expected its output in the error", err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := writeFile(to, []byte(readText(t, from))); err != nil {
		t.Fatal(err)
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestTargets(t *testing.T) {
	if got, err := parseTargets(platforms); err != nil || len(got) != 4 || got[3] != (target{"darwin", "arm64"}) {
		t.Errorf("parseTargets = %v, %v; expected 4 targets", got, err)
	}
	_, err := parseTargets("linux/amd64,plan9/386")
	if err == nil || !strings.Contains(err.Error(), `got "plan9/386", expected some of linux/amd64,`) {
		t.Errorf("parseTargets = %v, expected an error about plan9/386", err)
	}
}
