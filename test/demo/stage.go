package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
	"github.com/hookloop/hookloop/test/proc"
)

// stepTimeout bounds each step of the story.
const stepTimeout = 60 * time.Second

// stage is what the story is played on.
type stage struct {
	dir     string
	cluster *cluster.Cluster
	jaeger  *jaeger.Jaeger
	engine  *proc.Process
	hooks   []*proc.Process
}

// open starts the control plane, Jaeger and Hookloop. What has been started is in the stage even with an error.
func open(ctx context.Context) (*stage, error) {
	s := &stage{}
	for _, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"A Kubernetes control plane starts: etcd, kube-apiserver, kube-controller-manager. CRDs are installed.", s.startCluster},
		{"A Jaeger starts, to collect traces.", s.startJaeger},
		{"`hookloop serve` starts.", s.startEngine},
	} {
		fmt.Printf("\n● %s\n", step.title)
		begun := time.Now()
		if err := step.do(ctx); err != nil {
			return s, err
		}
		fmt.Printf("  ready after %s\n", time.Since(begun).Round(10*time.Millisecond))
	}
	return s, nil
}

func (s *stage) startCluster(ctx context.Context) (err error) {
	if s.dir, err = os.MkdirTemp("", "hookloop-demo-"); err != nil {
		return err
	}
	crds := []string{filepath.Join(cluster.Root(), "manifests", "crds")}
	for _, t := range tales {
		crds = append(crds, filepath.Join(cluster.Root(), "examples", t.example, "crd.yaml"))
	}
	s.cluster, err = cluster.New(ctx, cluster.Options{Dir: filepath.Join(s.dir, "cluster"), CRDs: crds})
	return err
}

func (s *stage) startJaeger(ctx context.Context) (err error) {
	s.jaeger, err = jaeger.New(ctx, jaeger.Options{})
	return err
}

func (s *stage) startEngine(ctx context.Context) error {
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return err
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	log, err := os.Create(filepath.Join(s.dir, "hookloop.log"))
	if err != nil {
		return err
	}
	s.engine, err = proc.Start(proc.Spec{
		Name: "hookloop", Path: filepath.Join(cluster.Root(), ".cache", "bin", "hookloop"), Log: log,
		Args: []string{
			"serve", "--kubeconfig", s.cluster.Kubeconfig(),
			"--health-probe-bind-address", health, "--metrics-address", fmt.Sprintf("127.0.0.1:%d", ports[1]),
		},
		Env: append(s.jaeger.Env(), "OTEL_BSP_SCHEDULE_DELAY=200", "OTEL_SERVICE_NAME=hookloop"),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return s.engine.Await(ctx, func(ctx context.Context) error { return answers(ctx, "http://"+health+"/readyz") })
}

// close ends everything, in the order in which it depends on each other.
func (s *stage) close() error {
	var errs []error
	for _, p := range append([]*proc.Process{s.engine}, s.hooks...) {
		if p != nil {
			errs = append(errs, p.Stop(10*time.Second))
		}
	}
	if s.jaeger != nil {
		errs = append(errs, s.jaeger.Stop())
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
	out, err := s.cluster.Kubectl(ctx, args...)
	return strings.TrimSpace(out), err
}

// show prints a command and what it says.
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

// lookAround tells how to reach what still runs.
func (s *stage) lookAround() {
	fmt.Printf(`
Everything is still running. To look around, in another terminal:
  export KUBECONFIG=%s
  alias kubectl='%s kubectl'
Hookloop's log: %s
Traces: %s/api/traces?service=hookloop
Ctrl-C ends it all.
`, s.cluster.Kubeconfig(), filepath.Join(cluster.Root(), ".cache", "bin", "controlplane"), filepath.Join(s.dir, "hookloop.log"), s.jaeger.URL())
}
