// Command release builds everything that a release publishes, and uploads nothing.
//
// It works on the last commit, with the version of the file VERSION. In a clone of its own it makes
// the commit that the tags of the Go modules name, and builds the packages from there. The same
// commit gives the same bytes: all times are that of the commit. With -check it compares the
// versions in the repository's files, with -set it rewrites them. tools/release/check.sh proves the
// packages. See docs/guides/releasing.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root")
	dir := flags.String("out", ".cache/release", "the folder of the release; it is replaced")
	list := flags.String("platforms", platforms, "the platforms of the programs; a release has all")
	check := flags.Bool("check", false, "only check that all files have the version of the file VERSION")
	set := flags.String("set", "", "only write this version, such as 0.2.0, into all files")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("got %q, expected only flags", flags.Args())
	}
	if *set != "" {
		return setVersion(*root, *set)
	}
	v, err := readVersion(*root)
	if err != nil {
		return err
	}
	if err := checkVersion(*root, v); err != nil || *check {
		return err
	}
	targets, err := parseTargets(*list)
	if err != nil {
		return err
	}
	source, err := filepath.Abs(*root)
	if err != nil {
		return err
	}
	target, err := filepath.Abs(*dir)
	if err != nil {
		return err
	}
	// The modes of files are part of the packages.
	syscall.Umask(0o022)
	return newRelease(source, target, v, targets, out).build(ctx)
}
