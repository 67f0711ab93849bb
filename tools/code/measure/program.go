package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hookloop/hookloop/tools/code/source"
)

// program is the size of one program and of its dependencies.
type program struct {
	Dir      string `json:"dir"`
	Bytes    int64  `json:"bytes"`    // of the binary, with symbols
	Release  int64  `json:"release"`  // of the binary as it is released
	Packages int    `json:"packages"` // all dependencies, with those of the standard library
	Standard int    `json:"standard"` // of these, packages of the standard library
	SumLines int    `json:"sumLines"` // lines of its module's go.sum
}

// release are the flags of a binary as the SDK's README recommends it: without symbols, and without
// the templates of gRPC's own traces, for which the linker keeps all exported methods.
var release = []string{"-ldflags=-s -w", "-tags=grpcnotrace"}

// measureProgram builds the program in dir twice, into a temporary folder: as "go build" makes it,
// and with the flags of a release; both without the revision of the repository.
func measureProgram(ctx context.Context, root, dir string) (program, error) {
	p := program{Dir: dir}
	at := filepath.Join(root, dir)
	packages, err := source.Output(ctx, at, "go", "list", "-deps", "-f", "{{.Standard}}", ".")
	if err != nil {
		return program{}, err
	}
	p.Packages, p.Standard = strings.Count(packages, "\n"), strings.Count(packages, "true\n")
	p.Bytes, err = binarySize(ctx, at)
	if err != nil {
		return program{}, err
	}
	p.Release, err = binarySize(ctx, at, release...)
	if err != nil {
		return program{}, err
	}
	p.SumLines, err = sumLines(ctx, at)
	return p, err
}

// binarySize returns the size of the program in dir, built with some flags.
func binarySize(ctx context.Context, dir string, flags ...string) (int64, error) {
	folder, err := os.MkdirTemp("", "measure-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	binary := filepath.Join(folder, "program")
	args := slices.Concat([]string{"build", "-buildvcs=false", "-o", binary}, flags, []string{"."})
	if _, err := source.Output(ctx, dir, "go", args...); err != nil {
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
