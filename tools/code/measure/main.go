// Command measure prints figures about the repository: the lengths of functions and files, wide
// lines, the import graph, exported names, words in comments, commit subjects, and the size of a
// program built with the SDK.
//
// It reads the tracked and the untracked files that git does not ignore, runs git and the go
// command, and writes nothing into the repository. Generated files and testdata do not count, but
// generated packages are nodes of the import graph. The output depends only on the repository and
// the tool chain, so that two runs can be compared line by line. The tests measure the small
// repository in testdata.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hookloop/hookloop/tools/code/source"
)

// config holds the flags.
type config struct {
	root    string // the repository
	since   string // the revision after which commits count; empty for all commits
	program string // directory of the program that is built, relative to root
	json    bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var c config
	flags := flag.NewFlagSet("measure", flag.ContinueOnError)
	flags.StringVar(&c.root, "root", ".", "the repository's root")
	flags.StringVar(&c.since, "since", "", "count only commits after this revision (default all commits)")
	flags.StringVar(&c.program, "program", "examples/hello-grpc", "directory of the program to build and measure")
	flags.BoolVar(&c.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	report, err := measure(ctx, c)
	if err != nil {
		return err
	}
	if !c.json {
		return report.print(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(report)
}

func measure(ctx context.Context, c config) (*report, error) {
	files, err := source.Read(ctx, c.root)
	if err != nil {
		return nil, err
	}
	packages, err := parsePackages(files)
	if err != nil {
		return nil, err
	}
	words, err := measureWords(files, packages)
	if err != nil {
		return nil, err
	}
	commits, err := measureCommits(ctx, c.root, c.since)
	if err != nil {
		return nil, err
	}
	program, err := measureProgram(ctx, c.root, c.program)
	if err != nil {
		return nil, err
	}
	return &report{
		Functions: measureFunctions(packages),
		Files:     measureFiles(files),
		Graph:     measureGraph(packages),
		Exported:  measureExported(packages),
		Words:     words,
		Commits:   commits,
		Program:   program,
	}, nil
}
