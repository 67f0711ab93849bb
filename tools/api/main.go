// Command api prints the exported names of the packages that users import, one line each, and keeps
// the list in api.txt, so that a review shows each change of the public API.
//
// It reads the source files of the repository. Commands, examples, tests, tools, and packages below
// internal/ have no public API. With -check it compares api.txt, with -write it
// rewrites the file; without either it prints the list. Its tests are beside the code.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// list is the path of the kept list, relative to the root of the repository.
const list = "tools/api/api.txt"

// errDiffers reports that the kept list is not the current one.
var errDiffers = errors.New(`the public API differs from ` + list + `; if the change is meant, run "make api"`)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("api", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root")
	check := flags.Bool("check", false, "fail if "+list+" is not the current list")
	write := flags.Bool("write", false, "write the list to "+list)
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := readFiles(ctx, *root)
	if err != nil {
		return err
	}
	lines, err := exported(files)
	if err != nil {
		return err
	}
	text := strings.Join(lines, "\n") + "\n"
	path := filepath.Join(*root, filepath.FromSlash(list))
	switch {
	case *write:
		return os.WriteFile(path, []byte(text), 0o644) //nolint:gosec // a file of the repository, which everyone reads
	case *check:
		kept, err := os.ReadFile(path) //nolint:gosec // a file of the repository that the caller names
		if err != nil {
			return err
		}
		return compare(out, kept, []byte(text))
	}
	_, err = io.WriteString(out, text)
	return err
}

// compare prints the lines that only one of the lists has, and returns errDiffers if there are any.
func compare(out io.Writer, kept, current []byte) error {
	if bytes.Equal(kept, current) {
		return nil
	}
	before := strings.Split(string(kept), "\n")
	after := strings.Split(string(current), "\n")
	return errors.Join(printMissing(out, "-", before, after), printMissing(out, "+", after, before), errDiffers)
}

// printMissing prints the lines that are not in others.
func printMissing(out io.Writer, sign string, lines, others []string) error {
	for _, line := range lines {
		if slices.Contains(others, line) {
			continue
		}
		if _, err := fmt.Fprintln(out, sign+line); err != nil {
			return err
		}
	}
	return nil
}
