// Command compare runs the same controller, written in several ways, through the same measurements
// and faults on a real control plane. `make compare` runs it; docs/explanation/benchmarks.md
// explains the tables.
//
// The controllers are in the folders controllerruntime and hook; they share package website. Each
// runs as a process on a control plane of its own. The command fails if a program does not recover
// from a fault, but not because it is slow or wrong for a while: the tables have this.
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
	"runtime"
	"syscall"
)

func main() {
	o, err := parse(os.Args[1:])
	if err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o, os.Stdout, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// report has the results of all programs.
type report struct {
	CPUs     int      `json:"cpus"`
	Sites    int      `json:"sites"`
	Programs []result `json:"programs"`
}

// result has the results of one program.
type result struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Lines and YAML are the lines that a user writes.
	Lines  int       `json:"lines"`
	YAML   int       `json:"yamlLines"`
	Costs  costs     `json:"costs"`
	Faults []finding `json:"faults"`
}

// progressFunc prints one line of progress, like Printf.
type progressFunc func(format string, args ...any)

// run measures all programs, one after the other.
func run(ctx context.Context, o options, out io.Writer, progress progressFunc) error {
	r := &report{CPUs: runtime.NumCPU(), Sites: o.sites}
	for _, p := range o.programs {
		progress("● %s", p.title)
		result, err := play(ctx, o, p, progress)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		r.Programs = append(r.Programs, result)
	}
	if !o.json {
		return r.tables(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// play measures one program on a stage of its own.
func play(ctx context.Context, o options, p program, progress progressFunc) (r result, err error) {
	r.Name = p.name
	r.Title = p.title
	r.Lines, r.YAML, err = p.lines()
	if err != nil {
		return r, err
	}
	s := &stage{options: o, program: p, progress: progress}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return r, fmt.Errorf("%w%s", err, s.lastWords())
	}
	r.Costs, err = s.costs(ctx)
	if err != nil {
		return r, fmt.Errorf("%w%s", err, s.lastWords())
	}
	r.Faults, err = s.faults(ctx)
	if err != nil {
		return r, fmt.Errorf("%w%s", err, s.lastWords())
	}
	if err := s.memory(ctx, &r.Costs); err != nil {
		return r, fmt.Errorf("%w%s", err, s.lastWords())
	}
	return r, nil
}
