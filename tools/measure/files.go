package main

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

// sourceFile is a file of source code in the repository.
type sourceFile struct {
	path      string // relative to the repository's root, with slashes
	language  string
	test      bool
	generated bool
	text      string
}

// group returns the row of a table in which the file counts.
func (f sourceFile) group() string {
	if f.test {
		return f.language + " tests"
	}
	return f.language
}

// Languages by the extension of a file, and the order of the tables' rows.
var (
	languages = map[string]string{".go": "Go", ".py": "Python", ".ts": "TypeScript", ".proto": "Protobuf"}
	groups    = []string{"Go", "Go tests", "Protobuf", "Python", "Python tests", "TypeScript", "TypeScript tests"}
)

// moduleFile is the name of the files that declare a module's path.
const moduleFile = "go.mod"

// readFiles returns the source files and the go.mod files of the repository, sorted by path.
func readFiles(ctx context.Context, root string) ([]sourceFile, error) {
	listing, err := output(ctx, root, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
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
	var files []sourceFile
	for _, p := range slices.Compact(paths) {
		language := languages[path.Ext(p)]
		if language == "" && path.Base(p) != moduleFile || inTestdata(p) {
			continue
		}
		text, err := dir.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed from the work tree, but not from the index yet
		}
		if err != nil {
			return nil, err
		}
		files = append(files, sourceFile{
			path: p, language: language, test: isTest(p), generated: isGenerated(p, string(text)), text: string(text),
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

// measured returns the files of a group that were written by hand.
func measured(files []sourceFile, group string) []sourceFile {
	var selected []sourceFile
	for _, f := range files {
		if f.group() == group && !f.generated {
			selected = append(selected, f)
		}
	}
	return selected
}

// output runs a command in dir and returns its standard output. The error holds what the command
// wrote to standard error.
func output(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // git and go, with the flags of whoever runs this
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
