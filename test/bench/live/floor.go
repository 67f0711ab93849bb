package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// floor measures the limit of the machine: a bare dynamic client creates n objects like the
// children, and nothing else runs. It deletes them, because the engine would cache them.
func (s *stage) floor(ctx context.Context, n int) error {
	in := fmt.Sprintf("floor-%d", len(s.floors))
	if err := s.makeNamespace(ctx, in); err != nil {
		return err
	}
	begun := time.Now()
	err := atOnce(ctx, n, func(ctx context.Context, i int) error {
		return s.create(ctx, configMaps, in, object{
			"apiVersion": "v1",
			"kind":       "ConfigMap",
			"metadata":   object{"name": fmt.Sprintf("crowd-%d", i), "labels": object{"bench.example.com/floor": "crowd"}},
			"data":       object{"text": text, "rest": strings.Repeat("x", s.bytes)},
		})
	})
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	s.floors = append(s.floors, float64(n)/time.Since(begun).Seconds())
	s.progress("  floor: a bare client creates %.0f ConfigMaps per second", s.floors[len(s.floors)-1])
	return s.client.Resource(configMaps).Namespace(in).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "bench.example.com/floor"})
}

// floorAgain stops the engine, measures the floor once more, and returns the mean. One measurement
// is as noisy as the machine, and the first one has an API server that has just started.
func (s *stage) floorAgain(ctx context.Context, n int) (float64, error) {
	if err := s.engine.Stop(stopGrace); err != nil {
		return 0, err
	}
	if err := s.floor(ctx, n); err != nil {
		return 0, err
	}
	var sum float64
	for _, f := range s.floors {
		sum += f
	}
	return sum / float64(len(s.floors)), nil
}

// atOnce calls do for 0 … n-1, with all goroutines.
func atOnce(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(hands)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}
