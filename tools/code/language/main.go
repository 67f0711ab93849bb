// Command language checks the language of the repository: phrases in comments and in Markdown, the
// widths of lines, comments of exported names, and the subjects of commits.
//
// It reads the files that git knows or does not ignore, and runs git. Generated files and testdata
// do not count. phrases.txt lists the phrases that are not used, each with a better one. The tests
// beside the code plant a fault for each rule.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/hookloop/hookloop/tools/code/source"
)

// config holds the flags and arguments.
type config struct {
	root    string
	rule    string   // only findings of this rule; empty for all rules
	summary bool     // print counts by directory instead of findings
	below   []string // only files below these directories; empty for the repository with its commits
}

// finding is a place that breaks a rule.
type finding struct {
	path string // of the file; empty for a commit
	line int
	rule string
	text string
}

// String returns the finding as "path:line: text (rule)".
func (f finding) String() string {
	if f.path == "" {
		return fmt.Sprintf("%s (%s)", f.text, f.rule)
	}
	return fmt.Sprintf("%s:%d: %s (%s)", f.path, f.line, f.text, f.rule)
}

// errFound reports that there are findings.
var errFound = errors.New("the language check failed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "language:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var c config
	flags := flag.NewFlagSet("language", flag.ContinueOnError)
	flags.StringVar(&c.root, "root", ".", "the repository's root")
	flags.StringVar(&c.rule, "rule", "", "print only findings of this rule: "+strings.Join(ruleNames, ", "))
	flags.BoolVar(&c.summary, "summary", false, "print counts by directory and rule")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if c.rule != "" && !slices.Contains(ruleNames, c.rule) {
		return fmt.Errorf("-rule %q: expected one of %s", c.rule, strings.Join(ruleNames, ", "))
	}
	for _, directory := range flags.Args() {
		c.below = append(c.below, path.Clean(directory))
	}
	found, err := check(ctx, c)
	if err != nil || len(found) == 0 {
		return err
	}
	if c.summary {
		return errors.Join(summarize(out, found), errFound)
	}
	for _, f := range found {
		if _, err := fmt.Fprintln(out, f); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %d findings", errFound, len(found))
}

// check returns all findings, in the order of the files.
func check(ctx context.Context, c config) ([]finding, error) {
	files, err := source.Read(ctx, c.root)
	if err != nil {
		return nil, err
	}
	var found []finding
	if len(c.below) == 0 {
		found, err = checkCommits(ctx, c.root, baseCommit)
		if err != nil {
			return nil, err
		}
	}
	for _, f := range files {
		if f.Generated || !within(f.Path, c.below) {
			continue
		}
		more, err := checkFile(f)
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return slices.DeleteFunc(found, func(f finding) bool { return c.rule != "" && f.rule != c.rule }), nil
}

// within reports whether a path is below one of the directories, or is one of them.
func within(file string, directories []string) bool {
	return len(directories) == 0 || slices.ContainsFunc(directories, func(d string) bool {
		return d == "." || file == d || strings.HasPrefix(file, d+"/")
	})
}

// summarize prints a table: a row for each directory of two elements, a column for each rule.
func summarize(out io.Writer, found []finding) error {
	rows := map[string]map[string]int{"total": {}}
	for _, f := range found {
		elements := strings.Split(path.Dir(f.path), "/")
		row := path.Join(elements[:min(2, len(elements))]...)
		if rows[row] == nil {
			rows[row] = map[string]int{}
		}
		rows[row][f.rule]++
		rows["total"][f.rule]++
	}
	text := fmt.Sprintf("%-28s", "")
	for _, rule := range ruleNames {
		text += fmt.Sprintf("%9s", rule)
	}
	total := rows["total"]
	delete(rows, "total")
	for _, row := range slices.Sorted(maps.Keys(rows)) {
		text += summaryLine(row, rows[row])
	}
	_, err := fmt.Fprintln(out, text+summaryLine("total", total))
	return err
}

func summaryLine(name string, counts map[string]int) string {
	line := fmt.Sprintf("\n%-28s", name)
	for _, rule := range ruleNames {
		line += fmt.Sprintf("%9d", counts[rule])
	}
	return line
}
