package main

import (
	"context"
	"fmt"
	"time"
)

// hurry is the number of edits without a pause for each edit that is followed by one.
const hurry = 10

// hurried is edit without pauses. The difference between the two is what an edit costs because the
// processes were at rest before it.
func (d *drift) hurried(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		all := hurry * d.Rounds
		for round := range all {
			if _, err := s.editOne(ctx, v, fmt.Sprintf("crowd-%d", round*d.Children/all)); err != nil {
				return err
			}
		}
		if err := s.rests(ctx); err != nil {
			return err
		}
		s.progress("  %d edits without a pause undone", all)
		d.Hurried, err = s.end(ctx, since, time.Now())
		return err
	}
}

// bareDrift is drift of the bare client: only its edits are measured.
func (s *stage) bareDrift(ctx context.Context, n int) (drift, error) {
	d := drift{Transport: s.transport, Children: n, Rounds: s.rounds}
	s.edits = "ask"
	if s.transport == writer {
		s.edits = "write"
	}
	if err := s.startEngine(ctx); err != nil {
		return d, err
	}
	if err := s.declare(ctx); err != nil {
		return d, err
	}
	if err := s.warm(ctx); err != nil {
		return d, err
	}
	v, err := follow(ctx, s.typed)
	if err != nil {
		return d, err
	}
	defer v.close()
	if err := s.alive(ctx, v, d.converge(s), d.edit(s), d.hurried(s)); err != nil {
		return d, err
	}
	d.memory, err = s.memory(ctx, 0)
	return d, err
}

// ratesTable has the costs of edits by their rate, beside those of the bare clients.
func (r *report) ratesTable() *table {
	t := &table{
		title: "**drift, by rate**: engine or bare client, for each edit: after a rest of all processes, and without a " +
			"pause",
		columns: []string{
			"transport", "children", "edits", "per second", "engine CPU", "of which in the kernel", "of the bare client",
			"waits of threads", "hook CPU", "allocated", "collections",
		},
	}
	if len(r.Drift) == 0 {
		return t
	}
	for _, d := range append(r.BareDrift, r.Drift...) {
		floor := r.bareDriftOf(d.Children)
		t.rateRow(d, "after a rest", d.Rounds, d.Drift, each(floor.Drift.EngineCPU, floor.Rounds))
		t.rateRow(d, "without a pause", hurry*d.Rounds, d.Hurried, each(floor.Hurried.EngineCPU, hurry*floor.Rounds))
	}
	return t
}

func (t *table) rateRow(d drift, rate string, n int, c cost, floor time.Duration) {
	share := 0.0
	if c.EngineCPU > 0 {
		share = c.EngineKernel.Seconds() / c.EngineCPU.Seconds()
	}
	allocated := ""
	if d.Transport != bare && d.Transport != writer {
		allocated = size(c.Allocated / int64(n))
	}
	t.add(string(d.Transport), fmt.Sprint(d.Children), fmt.Sprintf("%d, %s", n, rate),
		fmt.Sprintf("%.0f", float64(n)/c.Wall.Seconds()), ms(each(c.EngineCPU, n)), fmt.Sprintf("%.0f %%", 100*share),
		ratio(each(c.EngineCPU, n), floor), per(c.EngineWaits, n), ms(each(c.HookCPU, n)), allocated,
		fmt.Sprint(c.Collections))
}

// bareDriftOf returns the bare client's result for a number of children.
func (r *report) bareDriftOf(children int) drift {
	for _, d := range r.BareDrift {
		if d.Transport == bare && d.Children == children {
			return d
		}
	}
	return drift{Rounds: 1}
}
