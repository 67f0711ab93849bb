package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// perParent is the number of children of each parent of the fleet.
	perParent = 3
	// passes is the number of times that each parent of the fleet is touched, one after the other.
	passes = 3
	// floods is the number of times that all parents are touched as fast as possible.
	floods = 10
)

// fleet is the cost of many parents with a few children each.
type fleet struct {
	Transport transport `json:"transport"`
	Parents   int       `json:"parents"`
	Floor     float64   `json:"floorPerSecond"`
	// Created is the time from the CRD's creation until the client had created all parents. The API
	// server delays the first parent by two seconds.
	Created  time.Duration `json:"createdNs"`
	Converge cost          `json:"converge"`
	Update   cost          `json:"update"`
	// Idle is the cost of touches one after the other, and Saturated that of touches as fast as the
	// API server takes them.
	Touches          int  `json:"touches"`
	Idle             cost `json:"idle"`
	SaturatedTouches int  `json:"saturatedTouches"`
	Saturated        cost `json:"saturated"`
	memory
}

// fleet runs the workload.
func (s *stage) fleet(ctx context.Context) (fleet, error) {
	f := fleet{
		Transport: s.transport, Parents: s.parents,
		Touches: passes * s.parents, SaturatedTouches: floods * s.parents,
	}
	if err := s.floor(ctx, perParent*s.parents); err != nil {
		return f, err
	}
	if err := s.startEngine(ctx); err != nil {
		return f, err
	}
	v, err := follow(ctx, s.typed)
	if err != nil {
		return f, err
	}
	defer v.close()
	if err := s.alive(ctx, v, f.appear(s), f.update(s), f.idle(s), f.saturated(s)); err != nil {
		return f, err
	}
	f.memory, err = s.memory(ctx, restedFor)
	if err != nil {
		return f, err
	}
	if err := s.fleetProfiles(ctx); err != nil {
		return f, err
	}
	f.Floor, err = s.floorAgain(ctx, perParent*s.parents)
	return f, err
}

// fleetProfiles records the engine's profiles, if the options require them.
func (s *stage) fleetProfiles(ctx context.Context) error {
	for _, p := range []struct {
		workload string
		do       func(round int) error
	}{
		{"idle", func(round int) error { return s.touch(ctx, parentName(round%s.parents), round) }},
		{"saturated", func(round int) error { return s.touchAll(ctx, round) }},
		{"update", func(round int) error { return s.setTexts(ctx, fmt.Sprintf("round %d", round)) }},
		{"converge", func(round int) error {
			return s.create(ctx, crowds, namespace, s.parent(parentName(s.parents+round), perParent, text))
		}},
	} {
		if err := s.profiled(ctx, p.workload, p.do); err != nil {
			return err
		}
	}
	return nil
}

// alive runs steps one after the other, and ends with an error if the measured process ends.
func (s *stage) alive(ctx context.Context, v *view, steps ...func(context.Context, *view) error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	go func() { // the measured process → the steps; ends with them
		select {
		case <-s.measured().Done():
			end(fmt.Errorf("%s has ended", s.measured().Name()))
		case <-ctx.Done():
		}
	}()
	for _, step := range steps {
		if err := step(ctx, v); err != nil {
			return errors.Join(err, context.Cause(ctx))
		}
	}
	return nil
}

// appear creates the CRD, the controller and all parents.
func (f *fleet) appear(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		if err := s.declare(ctx); err != nil {
			return err
		}
		err = atOnce(ctx, f.Parents, func(ctx context.Context, i int) error {
			return s.create(ctx, crowds, namespace, s.parent(parentName(i), perParent, text))
		})
		if err != nil {
			return err
		}
		f.Created = time.Since(since.at)
		if s.alone == nil {
			if err := s.awaitController(ctx); err != nil {
				return err
			}
		}
		f.Converge, err = s.awaitTexts(ctx, v, since, perParent*f.Parents, text)
		s.progress("  converged after %s", f.Converge.Wall.Round(time.Millisecond))
		return err
	}
}

// update changes all parents.
func (f *fleet) update(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, v *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		const then = "second"
		if err := s.setTexts(ctx, then); err != nil {
			return err
		}
		f.Update, err = s.awaitTexts(ctx, v, since, perParent*f.Parents, then)
		s.progress("  updated after %s", f.Update.Wall.Round(time.Millisecond))
		return err
	}
}

// setTexts changes all parents.
func (s *stage) setTexts(ctx context.Context, text string) error {
	return atOnce(ctx, s.parents, func(ctx context.Context, i int) error {
		_, err := s.client.Resource(crowds).Namespace(namespace).Patch(
			ctx,
			parentName(i),
			types.MergePatchType,
			[]byte(`{"spec":{"text":"`+text+`"}}`),
			metav1.PatchOptions{},
		)
		return err
	})
}

// awaitTexts waits until all children have the text and the engine rests. The wall time is that of
// the last child.
func (s *stage) awaitTexts(ctx context.Context, v *view, since *reading, n int, text string) (cost, error) {
	done, err := v.awaitAll(ctx, n, text)
	if err != nil {
		return cost{}, err
	}
	if err := s.reports(ctx); err != nil {
		return cost{}, err
	}
	return s.end(ctx, since, done)
}

// reports waits until the engine rests and all parents have the status of their generation. A busy
// API server may delay the last status: it belongs to this workload.
func (s *stage) reports(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, waitTimeout, errors.New("not all parents have their status"))
	defer cancel()
	for {
		if err := s.rests(ctx); err != nil || s.options.scale {
			return err
		}
		if behind, err := s.behind(ctx); err != nil || !behind {
			return err
		}
	}
}

// behind reports whether a parent does not have the status of its generation.
func (s *stage) behind(ctx context.Context) (bool, error) {
	all, err := s.client.Resource(crowds).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(all.Items, func(o unstructured.Unstructured) bool {
		generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		return generation != o.GetGeneration()
	}), nil
}

// idle touches each parent several times without an effect on the children.
func (f *fleet) idle(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		for round := range passes {
			before := s.proxy.Count()
			for i := range f.Parents {
				if err := s.touch(ctx, parentName(i), round); err != nil {
					return err
				}
			}
			if err := s.asked(ctx, before); err != nil {
				return err
			}
			if err := s.rests(ctx); err != nil {
				return err
			}
		}
		f.Idle, err = s.end(ctx, since, time.Now())
		return err
	}
}

// saturated touches all parents with all goroutines, several times.
func (f *fleet) saturated(s *stage) func(context.Context, *view) error {
	return func(ctx context.Context, _ *view) error {
		since, err := s.begin(ctx)
		if err != nil {
			return err
		}
		before := s.proxy.Count()
		for round := range floods {
			if err := s.touchAll(ctx, passes+round); err != nil {
				return err
			}
		}
		touched := time.Now()
		if err := s.asked(ctx, before); err != nil {
			return err
		}
		if err := s.rests(ctx); err != nil {
			return err
		}
		f.Saturated, err = s.end(ctx, since, touched)
		return err
	}
}

// touchAll touches each parent once, with all goroutines.
func (s *stage) touchAll(ctx context.Context, round int) error {
	return atOnce(ctx, s.parents, func(ctx context.Context, i int) error { return s.touch(ctx, parentName(i), round) })
}

func parentName(i int) string { return fmt.Sprintf("crowd-%d", i) }
