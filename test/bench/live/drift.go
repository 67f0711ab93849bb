package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// drift is the cost of one parent with many children.
type drift struct {
	Transport transport `json:"transport"`
	Children  int       `json:"children"`
	// Floor is the number of ConfigMaps per second that a bare client creates on this machine: the
	// mean of before and after.
	Floor    float64 `json:"floorPerSecond"`
	Converge cost    `json:"converge"`
	// Settle is the cost from the last child's creation until the parent has its status and the
	// engine rests.
	Settle cost `json:"settle"`
	// Rounds is the number of edits. Latencies are the times from the response to the edit until the
	// API server has the correct child, in ascending order. Drift is the cost of all rounds.
	Rounds    int             `json:"rounds"`
	Latencies []time.Duration `json:"latenciesNs"`
	Drift     cost            `json:"drift"`
	// Touches is the number of changes of the parent that do not affect its children; Idle is their
	// cost.
	Touches int  `json:"touches"`
	Idle    cost `json:"idle"`
	memory
}

// text is the text that the children should have, and edited is a client's edit of one of them.
const (
	text   = "first"
	edited = "edited by hand"
)

// drift runs the workload with n children.
func (s *stage) drift(ctx context.Context, n int) (drift, error) {
	d := drift{Transport: s.transport, Children: n, Rounds: s.rounds, Touches: s.idle}
	if err := s.floor(ctx, n); err != nil {
		return d, err
	}
	v, err := s.watched(ctx)
	if err != nil {
		return d, err
	}
	defer v.close()
	for _, step := range []func(context.Context, *view) error{d.converge(s), d.edit(s), d.idle(s)} {
		if err := step(ctx, v); err != nil {
			return d, err
		}
	}
	d.memory, err = s.memory(ctx, 0)
	if err != nil {
		return d, err
	}
	err = s.profiled(ctx, "drift", func(round int) error {
		_, err := s.editOne(ctx, v, fmt.Sprintf("crowd-%d", round%n))
		return err
	})
	if err != nil {
		return d, err
	}
	if _, err := v.awaitAll(ctx, n, text); err != nil {
		return d, err
	}
	err = s.profiled(ctx, "build", func(round int) error {
		if err := s.create(ctx, crowds, namespace, s.parent(fmt.Sprintf("again-%d", round), n, text)); err != nil {
			return err
		}
		_, err := v.awaitAll(ctx, (round+2)*n, text)
		return err
	})
	if err != nil {
		return d, err
	}
	d.Floor, err = s.floorAgain(ctx, n)
	return d, err
}

// ready starts the engine, and waits until the controller runs and the API server is ready for
// parents.
func (s *stage) ready(ctx context.Context) error {
	if err := s.startEngine(ctx); err != nil {
		return err
	}
	if err := s.declare(ctx); err != nil {
		return err
	}
	if err := s.awaitController(ctx); err != nil {
		return err
	}
	return s.warm(ctx)
}

// watched is ready, and follows the children. The caller closes the view.
func (s *stage) watched(ctx context.Context) (*view, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	return follow(ctx, s.typed)
}

// converge creates the parent and waits for its children.
func (d *drift) converge(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if err := s.create(ctx, crowds, namespace, s.parent("crowd", d.Children, text)); err != nil {
			return err
		}
		done, err := v.awaitAll(ctx, d.Children, text)
		if err != nil {
			return err
		}
		d.Converge, d.Settle, err = s.inTwo(ctx, since, done, s.reports)
		s.progress("  converged after %s", d.Converge.Wall.Round(time.Millisecond))
		return err
	}
}

// edit has a client that changes children, one after the other, and measures the time until each is
// correct again.
func (d *drift) edit(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		for round := range d.Rounds {
			latency, err := s.editOne(ctx, v, fmt.Sprintf("crowd-%d", round*d.Children/d.Rounds))
			if err != nil {
				return err
			}
			d.Latencies = append(d.Latencies, latency)
			if err := s.rests(ctx); err != nil {
				return err
			}
		}
		slices.Sort(d.Latencies)
		s.progress("  %d edits undone", d.Rounds)
		d.Drift, err = s.end(ctx, since, time.Now())
		return err
	}
}

// editOne changes one child. It returns the time from the API server's response until the correct
// child was observed.
func (s *stage) editOne(ctx context.Context, v *view, name string) (time.Duration, error) {
	o, err := s.typed.CoreV1().ConfigMaps(namespace).Patch(
		ctx,
		name,
		types.MergePatchType,
		[]byte(`{"data":{"text":"`+edited+`"}}`),
		metav1.PatchOptions{},
	)
	if err != nil {
		return 0, err
	}
	answered := time.Now()
	version, err := strconv.ParseInt(o.ResourceVersion, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("child %s: resourceVersion: %w", name, err)
	}
	corrected, err := v.awaitOne(ctx, name, version, text)
	if err != nil {
		return 0, err
	}
	return max(0, corrected.Sub(answered)), nil
}

// idle touches the parent without an effect on the children.
func (d *drift) idle(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		for round := range d.Touches {
			before := s.proxy.Count()
			if err := s.touch(ctx, "crowd", round); err != nil {
				return err
			}
			if err := s.asked(ctx, before); err != nil {
				return err
			}
			if err := s.rests(ctx); err != nil {
				return err
			}
		}
		d.Idle, err = s.end(ctx, since, time.Now())
		return err
	}
}
