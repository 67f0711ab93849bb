// Package source reads the source files of the repository, and finds the comments in them.
//
// It reads the tracked and the untracked files that git does not ignore, except for testdata, and
// runs git. It changes nothing. Its tests are beside the code, and in the packages that use it.
package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
)

// File is a file of source code in the repository.
type File struct {
	Path      string // relative to the repository's root, with slashes
	Language  string // empty for go.mod files
	Test      bool
	Generated bool
	Text      string
}

// Group returns the row of a table in which the file counts.
func (f File) Group() string {
	if f.Test {
		return f.Language + " tests"
	}
	return f.Language
}

// languages maps the extension or the name of a file to its language.
var languages = map[string]string{
	".go": "Go", ".py": "Python", ".ts": "TypeScript", ".proto": "Protobuf", ".md": "Markdown",
	".sh": Script, ".bash": Script, ".yaml": Script, ".yml": Script, "Makefile": Script, "Dockerfile": Script,
}

// Script is the language of shell scripts, YAML, makefiles and the like: comments begin with "#".
const Script = "Script"

// Groups holds the rows of tables about code, in order. Markdown and scripts are none of them.
var Groups = []string{"Go", "Go tests", "Protobuf", "Python", "Python tests", "TypeScript", "TypeScript tests"}

// ModuleFile is the name of the files that declare a module's path.
const ModuleFile = "go.mod"

// Read returns the source files and the go.mod files of the repository, sorted by path.
func Read(ctx context.Context, root string) ([]File, error) {
	listing, err := Output(ctx, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	paths := strings.Split(strings.TrimSuffix(listing, "\x00"), "\x00")
	slices.Sort(paths)
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var files []File
	for _, p := range slices.Compact(paths) {
		language := languages[path.Ext(p)]
		if language == "" {
			language = languages[path.Base(p)]
		}
		if language == "" && path.Base(p) != ModuleFile || inTestdata(p) {
			continue
		}
		text, err := dir.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed from the work tree, but not from the index yet
		}
		if err != nil {
			return nil, err
		}
		files = append(files, File{
			Path: p, Language: language, Test: isTest(p), Generated: isGenerated(p, string(text)), Text: string(text),
		})
	}
	return files, nil
}

func inTestdata(p string) bool {
	return slices.Contains(strings.Split(p, "/"), "testdata")
}

// isTest reports whether a file is part of the tests, by the conventions of the three languages.
func isTest(p string) bool {
	base := path.Base(p)
	if strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, ".test.ts") {
		return true
	}
	if strings.HasPrefix(base, "test_") && strings.HasSuffix(base, ".py") {
		return true
	}
	return slices.ContainsFunc(strings.Split(path.Dir(p), "/"), func(element string) bool {
		return element == "test" || element == "tests"
	})
}

// The Go convention for generated files, see "go help generate".
var generatedHeader = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func isGenerated(p, text string) bool {
	base := path.Base(p)
	return slices.Contains(strings.Split(p, "/"), "gen") ||
		strings.HasPrefix(base, "zz_generated") ||
		strings.HasSuffix(base, "_pb.ts") || strings.HasSuffix(base, "_pb2.py") || strings.HasSuffix(base, "_pb2_grpc.py") ||
		path.Ext(p) == ".go" && generatedHeader.MatchString(text)
}

// Written returns the files of a group that were written by hand.
func Written(files []File, group string) []File {
	var selected []File
	for _, f := range files {
		if f.Group() == group && !f.Generated {
			selected = append(selected, f)
		}
	}
	return selected
}

// Output runs a command in dir and returns its standard output. The error holds what the command
// wrote to standard error.
func Output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // git and go, with the caller's flags
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("%s: %w: %s", cmd, err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return string(out), nil
}
