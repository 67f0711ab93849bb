package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// file is a Go source file of the repository.
type file struct {
	path string // relative to the repository's root, with slashes
	text string
}

// private lists the folders whose packages users cannot or need not import.
var private = []string{"internal", "cmd", "examples", "test", "testdata", "tools"}

// readFiles returns the Go files of the public packages. It asks git for the names, so that a new file counts before
// it is added, and an ignored one does not.
func readFiles(ctx context.Context, root string) ([]file, error) {
	list := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.go")
	list.Dir = root
	list.Stderr = os.Stderr
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", list, err)
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	var files []file
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if !public(name) {
			continue
		}
		text, err := dir.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, but still in the index
		}
		if err != nil {
			return nil, err
		}
		files = append(files, file{name, string(text)})
	}
	return files, nil
}

// public reports whether users can import what the file declares.
func public(name string) bool {
	if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
		return false
	}
	return !slices.ContainsFunc(strings.Split(path.Dir(name), "/"), func(element string) bool {
		return slices.Contains(private, element)
	})
}
