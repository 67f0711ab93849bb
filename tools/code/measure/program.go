package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// program is the size of one program and of its dependencies.
type program struct {
	Dir      string `json:"dir"`
	Bytes    int64  `json:"bytes"`    // of the binary, with symbols
	Packages int    `json:"packages"` // all dependencies, with those of the standard library
	Standard int    `json:"standard"` // of these, packages of the standard library
	SumLines int    `json:"sumLines"` // lines of its module's go.sum
}

// measureProgram builds the program in dir into a temporary folder. The binary is as "go build"
// makes it, without the revision of the repository.
func measureProgram(ctx context.Context, root, dir string) (program, error) {
	p := program{Dir: dir}
	at := filepath.Join(root, dir)
	packages, err := source.Output(ctx, at, "go", "list", "-deps", "-f", "{{.Standard}}", ".")
	if err != nil {
		return program{}, err
	}
	p.Packages, p.Standard = strings.Count(packages, "\n"), strings.Count(packages, "true\n")
	if p.Bytes, err = binarySize(ctx, at); err != nil {
		return program{}, err
	}
	p.SumLines, err = sumLines(ctx, at)
	return p, err
}

func binarySize(ctx context.Context, dir string) (int64, error) {
	folder, err := os.MkdirTemp("", "measure-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "program")
	if _, err := source.Output(ctx, dir, "go", "build", "-buildvcs=false", "-o", binary, "."); err != nil {
		return 0, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// sumLines returns the number of lines in the go.sum of the module that dir is in. A module without
// dependencies has none.
func sumLines(ctx context.Context, dir string) (int, error) {
	module, err := source.Output(ctx, dir, "go", "env", "GOMOD")
	if err != nil {
		return 0, err
	}
	sum, err := os.ReadFile(filepath.Join(filepath.Dir(strings.TrimSpace(module)), "go.sum"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return strings.Count(string(sum), "\n"), err
}
