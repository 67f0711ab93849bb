package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	hookobject "github.com/hookloop/hookloop/engine/object"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// floor measures the limit of the machine: a bare dynamic client creates n objects like the
// children, and nothing else runs. It deletes them, because the engine would cache them.
func (s *stage) floor(ctx context.Context, n int) error {
	f, err := s.createBare(ctx, n, func(i int) object {
		return object{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": fmt.Sprintf("crowd-%d", i), "labels": object{"bench.example.com/floor": "crowd"}},
			"data":     object{"text": text, "rest": strings.Repeat("x", s.bytes)},
		}
	})
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	s.floors, s.floorCPU = append(s.floors, f.rate), append(s.floorCPU, f.cpu)
	s.progress("  floor: a bare client creates %.0f ConfigMaps per second, with %s of CPU each", f.rate, ms(f.cpu))
	return nil
}

// begin measures both floors of a build of n objects, before the build.
func (f *buildFloors) begin(ctx context.Context, s *stage, n int) error {
	if err := s.floor(ctx, n); err != nil {
		return err
	}
	same, err := s.sameFloor(ctx, n)
	f.Same, f.SameCPU = same.rate, same.cpu
	return err
}

// end stops the engine, and measures the floor of plain ConfigMaps once more.
func (f *buildFloors) end(ctx context.Context, s *stage, n int) (err error) {
	f.Floor, err = s.floorAgain(ctx, n)
	f.FloorCPU = mean(s.floorCPU)
	return err
}

// sameFloor measures the rate and the CPU time of all processes for one write of a build: the bare
// client creates objects with everything that the engine's objects carry, and two watches read
// them, as the engine and the benchmark do. It is measured before the build alone, because the API
// server needs more for each write after some deletions.
func (s *stage) sameFloor(ctx context.Context, n int) (bareRate, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.watchBare(ctx); err != nil {
		return bareRate{}, err
	}
	f, err := s.createBare(ctx, n, s.asWritten)
	if err != nil {
		return bareRate{}, fmt.Errorf("floor of the same writes: %w", err)
	}
	s.progress("  floor: a bare client makes %.0f of the same writes per second, with %s of CPU each", f.rate, ms(f.cpu))
	return f, nil
}

// watchBare watches the ConfigMaps of the next floor until ctx is done: as the engine does, and as
// the benchmark does.
func (s *stage) watchBare(ctx context.Context) error {
	engine, err := s.client.Resource(configMaps).Namespace(s.bareNamespace()).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	bench, err := s.typed.CoreV1().ConfigMaps(s.bareNamespace()).Watch(ctx,
		metav1.ListOptions{LabelSelector: "bench.example.com/crowd"})
	if err != nil {
		return err
	}
	for _, w := range []watch.Interface{engine, bench} {
		go func() { // the API server → nothing; ends with ctx
			for range w.ResultChan() {
			}
		}()
	}
	return nil
}

// bareNamespace is the namespace of the next floor.
func (s *stage) bareNamespace() string { return fmt.Sprintf("floor-%d", s.bareRuns) }

// asWritten returns a ConfigMap like a child, or an output of a map controller, that the engine
// writes.
func (s *stage) asWritten(i int) object {
	name := fmt.Sprintf("crowd-%d", i)
	marks := object{}
	labels := object{}
	if s.mapping {
		name = inputName(i)
		key := fmt.Sprintf("Secret/%s/%s", namespace, name)
		labels["metacontroller.k8s.io/map-key"] = mapHash(key)
		marks["metacontroller.k8s.io/map-key"], marks["metacontroller.k8s.io/map-controller"] = key, "bench"
	}
	labels["bench.example.com/crowd"], labels["bench.example.com/floor"] = "crowd", "crowd"
	body := func() object {
		return object{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": object{"name": name, "labels": labels, "annotations": maps.Clone(marks)},
			"data":     object{"text": text, "rest": strings.Repeat("x", s.bytes)},
		}
	}
	applied, err := json.Marshal(body())
	if err != nil {
		panic(err) // texts only
	}
	o := body()
	metadata := o["metadata"].(object)
	metadata["annotations"].(object)[hookobject.LastAppliedAnnotation] = string(applied)
	metadata["ownerReferences"] = []any{object{
		"apiVersion": "bench.example.com/v1", "kind": "Crowd", "name": "crowd", "uid": "4b7f8a3e-0000-4000-8000-000000000000",
		"controller": true, "blockOwnerDeletion": true,
	}}
	return o
}

// bareRate is the result of a bare client: objects per second, and the CPU time of all processes
// for one object.
type bareRate struct {
	rate float64
	cpu  time.Duration
}

// buildFloors are the floors of a build: those of plain ConfigMaps, and those of objects like the
// engine's with watches like the engine's and the benchmark's.
type buildFloors struct {
	// Floor is the number of ConfigMaps per second that a bare client creates on this machine: the
	// mean of before and after.
	Floor float64 `json:"floorPerSecond"`
	// FloorCPU is the CPU time of all processes for one of them.
	FloorCPU time.Duration `json:"floorCPUNs"`
	// Same and SameCPU are the figures of the same writes.
	Same    float64       `json:"sameWritesPerSecond"`
	SameCPU time.Duration `json:"sameWritesCPUNs"`
}

// createBare creates n ConfigMaps in a namespace of their own, and deletes them.
func (s *stage) createBare(ctx context.Context, n int, body func(i int) object) (bareRate, error) {
	in := s.bareNamespace()
	s.bareRuns++
	if err := s.makeNamespace(ctx, in); err != nil {
		return bareRate{}, err
	}
	before, err := s.othersCPU()
	if err != nil {
		return bareRate{}, err
	}
	begun := time.Now()
	err = atOnce(ctx, n, func(ctx context.Context, i int) error { return s.create(ctx, configMaps, in, body(i)) })
	if err != nil {
		return bareRate{}, err
	}
	wall := time.Since(begun)
	after, err := s.othersCPU()
	if err != nil {
		return bareRate{}, err
	}
	return bareRate{rate: float64(n) / wall.Seconds(), cpu: each(after-before, n)},
		s.client.Resource(configMaps).Namespace(in).DeleteCollection(ctx, metav1.DeleteOptions{},
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
func mean[N float64 | time.Duration](numbers []N) N {
	var sum N
	for _, n := range numbers {
		sum += n
	}
	return sum / N(len(numbers))
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

// mapHash is the label value of a map key, as the documentation of MapControllers defines it.
func mapHash(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:16])
}
