package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookloop/hookloop/internal/localplane"
	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
)

// stepTimeout bounds each step of the story.
const stepTimeout = 60 * time.Second

// stage is the environment of the story.
type stage struct {
	dir string
	// bin is the folder of the cluster's kubectl.
	bin     string
	assets  localplane.Assets
	cluster *localplane.Cluster
	// place is the cluster that the user names, instead of cluster.
	place  *place
	traces *traces
	// recorded reports that the Jaeger ran when the current tale changed its object.
	recorded bool
	// program is the hookloop program that the user names; empty is that of `make demo`.
	program string
	engine  *serve.Engine
	hooks   []*proc.Process
}

// open starts the control plane, Jaeger and Hookloop. If it fails, the stage holds the processes
// that it has started.
func open(ctx context.Context) (*stage, error) {
	s := &stage{}
	var err error
	s.program, err = findHookloop()
	if err != nil {
		return s, err
	}
	type act struct {
		title string
		do    func(context.Context) error
	}
	acts := []act{
		{"Looking for a Kubernetes control plane …", s.findAssets},
		{"Starting etcd, the API server and (if found) the controller manager; installing CRDs …", s.startCluster},
		{"Starting `hookloop serve`, and a Jaeger to collect traces …", s.startEngine},
	}
	if os.Getenv(envKubeconfig) != "" {
		acts = []act{
			{"Creating a namespace and the examples' CRDs in the cluster of " + envKubeconfig + " …", s.usePlace},
			{"Starting a Jaeger to collect traces …", s.startTraces},
		}
	}
	for _, step := range acts {
		fmt.Printf("\n● %s\n", step.title)
		begun := time.Now()
		if err := step.do(ctx); err != nil {
			return s, err
		}
		fmt.Printf("  ready after %s\n", time.Since(begun).Round(10*time.Millisecond))
	}
	return s, nil
}

// findAssets takes existing programs, or builds them.
func (s *stage) findAssets(ctx context.Context) (err error) {
	search := localplane.Search{Built: cluster.Built(), Fetch: true}
	s.assets, err = localplane.Find(ctx, search)
	var missing *localplane.MissingError
	if errors.As(err, &missing) {
		fmt.Printf("  found none: %s\n", strings.Join(missing.Tried, "; "))
		if err := controlPlane(ctx); err != nil {
			return err
		}
		s.assets, err = localplane.Find(ctx, search)
	}
	if err != nil {
		return err
	}
	if s.assets.Kubectl.IsZero() {
		return fmt.Errorf("%s has no kubectl, and it is not on the PATH; install it", s.assets.Source)
	}
	fmt.Printf("  found: %s\n", s.assets.Source)
	if s.assets.ControllerManager.IsZero() {
		fmt.Println("  It has no kube-controller-manager, which would collect garbage. Leaving out the step that deletes\n" +
			"  an object with its children.")
	}
	return nil
}

func (s *stage) startCluster(ctx context.Context) (err error) {
	s.dir, err = os.MkdirTemp("", "hookloop-demo-")
	if err != nil {
		return err
	}
	crds := []string{filepath.Join(cluster.Root(), "manifests", "crds")}
	for _, t := range tales {
		crds = append(crds, filepath.Join(cluster.Root(), "examples", t.example, "crd.yaml"))
	}
	s.cluster, err = localplane.New(ctx, localplane.Options{
		Dir: filepath.Join(s.dir, "cluster"), Assets: s.assets, CRDs: crds,
	})
	if err != nil {
		return err
	}
	s.bin, err = s.cluster.InstallKubectl()
	return err
}

// usePlace prepares the cluster that the user names.
func (s *stage) usePlace(ctx context.Context) (err error) {
	s.dir, err = os.MkdirTemp("", "hookloop-demo-")
	if err != nil {
		return err
	}
	if err := os.Mkdir(s.controllers(), 0o700); err != nil {
		return err
	}
	s.place, err = openPlace(ctx, os.Getenv(envKubeconfig), s.dir)
	return err
}

// controllers is the folder of the controllers for an engine that reads them from files.
func (s *stage) controllers() string { return filepath.Join(s.dir, "controllers") }

func (s *stage) startTraces(ctx context.Context) (err error) {
	s.traces, err = openTraces(ctx)
	return err
}

func (s *stage) startEngine(ctx context.Context) error {
	if err := s.startTraces(ctx); err != nil {
		return err
	}
	return s.serve(ctx)
}

// serve runs "hookloop serve".
func (s *stage) serve(ctx context.Context, flags ...string) error {
	log, err := os.Create(filepath.Join(s.dir, "hookloop.log"))
	if err != nil {
		return err
	}
	s.engine, err = serve.Start(ctx, serve.Config{
		Kubeconfig: s.kubeconfig(), Program: s.program, Flags: flags, Log: log,
		Env: append(s.traces.ports.Env(), "OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_SERVICE_NAME=hookloop"),
	})
	return err
}

func (s *stage) kubeconfig() string {
	if s.place != nil {
		return s.place.kubeconfig
	}
	return s.cluster.Kubeconfig()
}

// close ends everything, dependents first. The story may have been interrupted.
func (s *stage) close() error {
	ctx := context.Background()
	var errs []error
	if s.place != nil && s.engine != nil {
		errs = append(errs, s.place.removeParents(ctx))
	}
	processes := s.hooks
	if s.engine != nil {
		processes = append([]*proc.Process{s.engine.Process}, s.hooks...)
	}
	for _, p := range processes {
		errs = append(errs, p.Stop(10*time.Second))
	}
	if s.traces != nil {
		errs = append(errs, s.traces.close())
	}
	if s.place != nil {
		errs = append(errs, s.place.remove(ctx))
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}

// kubectl runs kubectl as the admin; its output is trimmed.
func (s *stage) kubectl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	run := s.runKubectl
	if s.place != nil {
		run = s.place.run
	}
	out, err := run(ctx, args...)
	return strings.TrimSpace(out), err
}

func (s *stage) runKubectl(ctx context.Context, args ...string) (string, error) {
	return s.cluster.Kubectl(ctx, args...)
}

// show prints a command and its output.
func (s *stage) show(ctx context.Context, args ...string) error {
	out, err := s.kubectl(ctx, args...)
	if err != nil {
		return err
	}
	fmt.Printf("  $ kubectl %s\n", strings.Join(args, " "))
	for line := range strings.Lines(out) {
		fmt.Print("    ", line)
	}
	fmt.Println()
	return nil
}

// lookAround prints the addresses of the running processes.
func (s *stage) lookAround() {
	commands := "export KUBECONFIG=" + s.kubeconfig()
	if s.bin != "" {
		commands += "\n  export PATH=" + s.bin + ":$PATH"
	}
	fmt.Printf(`
Everything is still running. To look around, in another terminal:
  %s
Hookloop's log: %s
Traces: %s/api/traces?service=hookloop
Ctrl-C ends it all.
`, commands, filepath.Join(s.dir, "hookloop.log"), s.traces.jaeger.URL())
}
