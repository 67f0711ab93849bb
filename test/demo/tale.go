package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/change"
	reading "github.com/hookloop/hookloop/internal/jaeger"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/apimachinery/pkg/types"
)

// tale is the story with one example.
type tale struct {
	title string
	// example is a folder of examples. Its hello.yaml has an object of kind with the folder's name.
	example, kind string
	hook          proc.Spec
	// replace is the hook's address in the example's controller.yaml. The demo replaces it by a free
	// port.
	replace string
}

var tales = []tale{
	{
		title: "A Python webhook", example: "hello-webhook", kind: "helloworlds.example.com",
		hook: proc.Spec{
			Name: "hello-webhook", Path: "python3",
			Args: []string{filepath.Join(cluster.Root(), "examples", "hello-webhook", "hook.py"), "--port", "0"},
		},
		replace: "http://127.0.0.1:8080",
	},
	{
		title: "A Go hook over gRPC", example: "hello-grpc", kind: "greetings.demo.example.com",
		hook: proc.Spec{
			Name: "hello-grpc",
			Path: filepath.Join(cluster.Root(), ".cache", "bin", "hello-grpc"),
			Args: []string{"--listen", "127.0.0.1:0"},
			Env:  []string{"OTEL_SERVICE_NAME=hello-grpc", "OTEL_BSP_SCHEDULE_DELAY=200"},
		},
		replace: "127.0.0.1:9443",
	},
}

// children are the resources of the examples' children.
const children = "configmaps,deployments.apps,services,pods"

// step is a step of a tale.
type step struct {
	title string
	do    func(context.Context, tale) error
}

// run runs one tale.
func (s *stage) run(ctx context.Context, t tale) error {
	fmt.Printf("\n━━━ %s (examples/%s) ━━━\n", t.title, t.example)
	steps := []step{
		{"Starting the hook in its own process, and declaring the controller …", s.declare},
		{"Creating an object; the hook answers with its children …", s.create},
		{"Changing the object; its children follow …", s.change},
		{"Deleting a child by hand; it comes back …", s.loseChild},
		{"Reading the trace of the change from Jaeger …", s.trace},
	}
	if s.place != nil || !s.assets.ControllerManager.IsZero() {
		steps = append(steps, step{"Deleting the object; its children go with it …", s.remove})
	}
	for _, step := range steps {
		fmt.Printf("\n● %s\n", step.title)
		begun := time.Now()
		if err := step.do(ctx, t); err != nil {
			return err
		}
		fmt.Printf("  (%s)\n", time.Since(begun).Round(100*time.Millisecond))
	}
	return nil
}

func (s *stage) declare(ctx context.Context, t tale) error {
	t.hook.Env = append(t.hook.Env, s.traces.ports.Env()...)
	hook, address, err := serve.Hook(ctx, t.hook)
	if hook != nil {
		s.hooks = append(s.hooks, hook)
	}
	if err != nil {
		return err
	}
	dir := filepath.Join(cluster.Root(), "examples", t.example)
	controller, err := os.ReadFile(filepath.Join(dir, "controller.yaml")) //nolint:gosec // a file of the repository
	if err != nil {
		return err
	}
	controller = bytes.ReplaceAll(controller, []byte(t.replace), []byte(address))
	if s.place != nil {
		return s.declareFile(ctx, t, controller)
	}
	file := filepath.Join(s.dir, t.example+".yaml")
	if err := os.WriteFile(file, controller, 0o600); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "apply", "-f", file); err != nil {
		return err
	}
	if _, err := s.kubectl(ctx, "wait", "--for=condition=Ready", "compositecontroller/"+t.example,
		"--timeout=30s"); err != nil {
		return err
	}
	return s.show(ctx, "get", "compositecontroller", t.example)
}

// declareFile adds a controller to the files of the engine, and starts the engine with the first.
func (s *stage) declareFile(ctx context.Context, t tale, controller []byte) error {
	file := filepath.Join(s.controllers(), t.example+".yaml")
	if err := os.WriteFile(file, controller, 0o600); err != nil {
		return err
	}
	if s.engine == nil {
		fmt.Println("  $ hookloop serve -f " + s.controllers())
		if err := s.serve(ctx, "-f", s.controllers()); err != nil {
			return err
		}
	}
	started := "Started controller: " + t.example
	if err := s.eventually(ctx, "the controller runs", func() error {
		if !strings.Contains(s.engine.Output(), started) {
			return errors.New("it has not started")
		}
		return nil
	}); err != nil {
		return err
	}
	fmt.Println("    " + started)
	return nil
}

func (s *stage) create(ctx context.Context, t tale) error {
	if _, err := s.kubectl(ctx, "apply", "-f",
		filepath.Join(cluster.Root(), "examples", t.example, "hello.yaml")); err != nil {
		return err
	}
	if err := s.greets(ctx, t, "World"); err != nil {
		return err
	}
	return s.look(ctx, t)
}

func (s *stage) change(ctx context.Context, t tale) error {
	s.recorded = s.traces.running()
	return s.changeTo(ctx, t, "Kubernetes")
}

func (s *stage) changeTo(ctx context.Context, t tale, who string) error {
	patch := fmt.Sprintf(`{"spec":{"who":%q}}`, who)
	fmt.Printf("  $ kubectl patch %s %s --type=merge -p '%s'\n", t.kind, t.example, patch)
	if _, err := s.kubectl(
		ctx,
		"patch",
		t.kind,
		t.example,
		"--type=merge",
		"-p",
		patch,
	); err != nil {
		return err
	}
	if err := s.greets(ctx, t, who); err != nil {
		return err
	}
	return s.look(ctx, t)
}

// greets waits until the ConfigMap and the recreated Pod greet who, and all four children exist.
func (s *stage) greets(ctx context.Context, t tale, who string) error {
	return s.eventually(ctx, "the children greet "+who, func() error {
		for _, child := range []string{"configmap", "pod", "deployment", "service"} {
			out, err := s.kubectl(ctx, "get", child, t.example, "-o", "yaml")
			if err != nil {
				return err
			}
			if (child == "configmap" || child == "pod") &&
				(!strings.Contains(out, "Hello, "+who+"!") || strings.Contains(out, "deletionTimestamp")) {
				return fmt.Errorf("the %s does not greet %s yet", child, who)
			}
		}
		return nil
	})
}

func (s *stage) look(ctx context.Context, t tale) error {
	if err := s.show(ctx, "get", t.kind); err != nil {
		return err
	}
	return s.show(ctx, "get", children, "--selector", "controller-uid")
}

func (s *stage) loseChild(ctx context.Context, t tale) error {
	const uid = "jsonpath={.metadata.uid}"
	before, err := s.kubectl(ctx, "get", "service", t.example, "-o", uid)
	if err != nil {
		return err
	}
	if err := s.show(ctx, "delete", "service", t.example); err != nil {
		return err
	}
	if err := s.eventually(ctx, "the Service is back", func() error {
		after, err := s.kubectl(ctx, "get", "service", t.example, "-o", uid)
		if err == nil && after == before {
			err = errors.New("the Service is still the old one")
		}
		return err
	}); err != nil {
		return err
	}
	return s.show(ctx, "get", "service", t.example)
}

// trace prints the change of step "Changing the object", which is generation 2. If Jaeger was not
// ready at that step, another change follows: generation 3.
func (s *stage) trace(ctx context.Context, t tale) error {
	generation := int64(2)
	if err := s.traces.await(ctx); err != nil {
		return err
	}
	if !s.recorded {
		fmt.Println("  Jaeger was not running yet. Changing the object again to get a trace.")
		if err := s.changeTo(ctx, t, "Jaeger"); err != nil {
			return err
		}
		generation = 3
	}
	parent, err := s.kubectl(ctx, "get", t.kind, t.example, "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return err
	}
	clusterUID, err := s.kubectl(ctx, "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}")
	if err != nil {
		return err
	}
	id := change.Of(types.UID(clusterUID), types.UID(parent), generation)
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	found, err := s.traces.jaeger.Await(ctx, id.Trace.String(),
		func(trace *reading.Trace) bool { return len(trace.Named("change")) > 0 })
	if err != nil {
		if found != nil {
			err = fmt.Errorf("%w; it has come so far:\n%s", err, reading.Tree(found))
		}
		return err
	}
	for line := range strings.Lines(reading.Tree(found)) {
		fmt.Print("  ", line)
	}
	fmt.Printf("\n  As JSON, while this Jaeger runs: %s\n", s.traces.jaeger.TraceURL(id.Trace.String()))
	return nil
}

func (s *stage) remove(ctx context.Context, t tale) error {
	if err := s.show(ctx, "delete", t.kind, t.example); err != nil {
		return err
	}
	if err := s.eventually(ctx, "the children are gone", func() error {
		out, err := s.kubectl(ctx, "get", children, "--selector", "controller-uid", "-o", "name")
		if err == nil && out != "" {
			err = fmt.Errorf("%s still exist", strconv.Quote(out))
		}
		return err
	}); err != nil {
		return err
	}
	return s.show(ctx, "get", children, "--selector", "controller-uid")
}

// eventually waits for a condition.
func (s *stage) eventually(ctx context.Context, what string, condition func() error) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := condition()
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-s.engine.Done():
			return fmt.Errorf("%s: hookloop has ended: %w; its log ends: %s", what, s.engine.Err(), s.engine.Output())
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, stepTimeout, err)
		}
	}
}
