// Command live measures Hookloop on a real control plane: `hookloop serve` and a hook as processes,
// with a proxy between them that counts bytes. `make bench` runs it; docs/explanation/benchmarks.md
// explains the tables.
//
// It fails if something is wrong (a child that never becomes correct, an engine that never rests),
// but not because something is slow.
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
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err = run(ctx, o, os.Stdout, func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// report holds all results of a run.
type report struct {
	CPUs    int     `json:"cpus"`
	Drift   []drift `json:"drift"`
	Fleet   []fleet `json:"fleet"`
	Parts   []parts `json:"parts,omitempty"`
	Scale   []scale `json:"scale,omitempty"`
	Skipped []skip  `json:"skipped,omitempty"`
}

// skip is a workload that the engine refused to run.
type skip struct{ Transport, Reason string }

// progressFunc prints one line of progress, like Printf.
type progressFunc func(format string, args ...any)

// run measures all cases of the options, one after the other, each on its own control plane.
func run(ctx context.Context, o options, out io.Writer, progress progressFunc) error {
	r := &report{CPUs: runtime.NumCPU()}
	if o.parents > 0 && !o.scale {
		if err := r.fleet(ctx, o, bare, progress); err != nil {
			return err
		}
	}
	for _, t := range o.transports {
		err := r.measure(ctx, o, t, progress)
		var refused *refusal
		if t == stream && errors.As(err, &refused) {
			r.Skipped = append(r.Skipped, skip{Transport: string(t), Reason: refused.message})
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if !o.json {
		return r.tables(out)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}

// measure runs all workloads over one transport.
func (r *report) measure(ctx context.Context, o options, t transport, progress progressFunc) error {
	if o.scale {
		progress("● %s: %d parents with %d children each", t, o.parents, perLarge)
		return play(ctx, o, t, "scale", progress, &r.Scale, func(s *stage) (scale, error) { return s.scale(ctx) })
	}
	for _, n := range o.children {
		progress("● %s: one parent with %d children", t, n)
		err := play(ctx, o, t, fmt.Sprintf("drift-%d", n), progress, &r.Drift,
			func(s *stage) (drift, error) { return s.drift(ctx, n) })
		if err != nil {
			return err
		}
	}
	for _, n := range o.inputs {
		progress("● %s: one parent with %d inputs", t, n)
		err := play(ctx, o, t, fmt.Sprintf("inputs-%d", n), progress, &r.Parts,
			func(s *stage) (parts, error) { return s.parts(ctx, n) })
		if err != nil {
			return err
		}
	}
	if o.parents == 0 {
		return nil
	}
	return r.fleet(ctx, o, t, progress)
}

// fleet measures many parents over one transport.
func (r *report) fleet(ctx context.Context, o options, t transport, progress progressFunc) error {
	progress("● %s: %d parents with %d children each", t, o.parents, perParent)
	return play(ctx, o, t, "fleet", progress, &r.Fleet, func(s *stage) (fleet, error) { return s.fleet(ctx) })
}

// play runs a workload on a stage of its own and appends its result.
func play[T any](
	ctx context.Context, o options, t transport, workload string, progress progressFunc, results *[]T,
	run func(*stage) (T, error),
) error {
	s := &stage{options: o, transport: t, workload: workload, progress: progress}
	err := onStage(ctx, s, func(s *stage) error {
		result, err := run(s)
		if err == nil {
			*results = append(*results, result)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", workload, err)
	}
	return nil
}

// onStage sets a stage up, runs play on it, and tears it down.
func onStage(ctx context.Context, s *stage, play func(*stage) error) (err error) {
	defer func() { err = errors.Join(err, s.close()) }()
	if err := s.open(ctx); err != nil {
		return err
	}
	if err := play(s); err != nil {
		return fmt.Errorf("%w%s", err, s.lastWords())
	}
	return nil
}
