// Command prove runs the examples on a real control plane, one after the other, and prints a table.
// For each example it runs the hook as a process, then the script prove.sh, and then proves that
// the engine no longer writes.
//
// Arguments are names of examples; without any, all are run. Package kubelet replaces a real
// kubelet.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "prove:", err)
		os.Exit(1) //nolint:gocritic // stop has nothing left to undo
	}
}

func run(ctx context.Context, only []string) (err error) {
	examples, err := find()
	if err != nil {
		return err
	}
	for _, name := range only {
		if !slices.Contains(examples, name) {
			return fmt.Errorf("there is no example %q; expected one of %v", name, examples)
		}
	}
	if len(only) > 0 {
		examples = only
	}
	s, err := open(ctx, examples)
	defer func() { err = errors.Join(err, s.close()) }()
	if err != nil {
		return err
	}
	table := "\nEXAMPLE\tRESULT\tSECONDS\n"
	failed := 0
	for _, name := range examples {
		begun := time.Now()
		fmt.Printf("\n━━━ %s ━━━\n", name)
		result := "pass"
		if err := s.prove(ctx, os.Stdout, name); err != nil {
			failed++
			result = "FAIL"
			fmt.Println("✗", err)
		}
		table += fmt.Sprintf("%s\t%s\t%.1f\n", name, result, time.Since(begun).Seconds())
	}
	if err := align(os.Stdout, table); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d examples fail", failed, len(examples))
	}
	return nil
}

// align prints a table with cells that are separated by tabs.
func align(out io.Writer, table string) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := io.WriteString(w, table); err != nil {
		return err
	}
	return w.Flush()
}
