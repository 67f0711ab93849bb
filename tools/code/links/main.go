// Command links checks the links and tables of the documentation, and prints their faults.
//
// It reads the repository's Markdown files: relative links must lead to files and folders that
// exist, and their anchors to headings. The rows of a table must have as many cells as its header.
// A path such as docs/guides/hooks.md in any other source file must exist too. With -site it checks
// the pages of a built site instead. Links to other hosts are not opened. It changes nothing; its
// tests are beside the code.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/hookloop/hookloop/tools/code/source"
)

// finding is a link that leads nowhere, or a broken row.
type finding struct {
	path    string
	line    int // 0 in a built page
	message string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("links", flag.ContinueOnError)
	root := flags.String("root", ".", "the repository's root")
	site := flags.String("site", "", "check the HTML pages of this folder instead")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var found []finding
	if *site != "" {
		pages, err := readSite(os.DirFS(*site))
		if err != nil {
			return err
		}
		found = pages.check()
	} else {
		files, err := source.Read(ctx, *root)
		if err != nil {
			return err
		}
		found = checkRepository(os.DirFS(*root), files)
	}
	return report(out, found)
}

// report prints the findings, and returns an error if there are any.
func report(out io.Writer, found []finding) error {
	for _, f := range found {
		position := f.path
		if f.line > 0 {
			position = fmt.Sprintf("%s:%d", f.path, f.line)
		}
		if _, err := fmt.Fprintf(out, "%s: %s\n", position, f.message); err != nil {
			return err
		}
	}
	if len(found) > 0 {
		return fmt.Errorf("%d findings", len(found))
	}
	return nil
}
