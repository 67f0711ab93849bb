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
		return fmt.Errorf("floor: %w", err)
	}
	begun := time.Now()
	err := atOnce(ctx, n, func(ctx context.Context, i int) error {
		return s.create(ctx, configMaps, in, object{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": fmt.Sprintf("crowd-%d", i), "labels": object{"bench.example.com/floor": "crowd"}},
			"data":     object{"text": text, "rest": strings.Repeat("x", s.bytes)},
		})
	})
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	rate := float64(n) / time.Since(begun).Seconds()
	s.floors = append(s.floors, rate)
	s.progress("  floor: a bare client creates %.0f ConfigMaps per second", rate)
	return s.client.Resource(configMaps).Namespace(in).DeleteCollection(ctx, metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: "bench.example.com/floor"})
}

// floorAgain stops the engine, measures the floor once more, and returns the mean. One measurement
// is as noisy as the machine, and the first one has an API server that has just started.
func (s *stage) floorAgain(ctx context.Context, n int) (float64, error) {
	if err := s.measured().Stop(stopGrace); err != nil {
		return 0, err
	}
	if err := s.floor(ctx, n); err != nil {
		return 0, err
	}
	return mean(s.floors), nil
}

// mean returns the mean of at least one number.
func mean(numbers []float64) float64 {
	sum := 0.0
	for _, n := range numbers {
		sum += n
	}
	return sum / float64(len(numbers))
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
