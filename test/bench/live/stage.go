package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/bench/wire"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

const (
	// waitTimeout bounds each wait. A longer wait is a fault.
	waitTimeout = 5 * time.Minute
	// stopGrace is the time that a process may take to end.
	stopGrace = 10 * time.Second
	// hands is the number of goroutines of a client that writes.
	hands = 64
)

// engineFlags remove the limit of the engine's requests to the API server.
var engineFlags = []string{"--client-go-qps=5000", "--client-go-burst=5000", "--workers=10", "--zap-log-level=error"}

// stage is a control plane with an engine and a hook, for one workload.
type stage struct {
	options
	transport transport
	// mapping reports that the controller is a MapController.
	mapping bool
	// themes reports that the hook is asked for the related objects of parents.
	themes bool
	// workload is part of the names of the stage's files: drift-1000, fleet.
	workload string
	progress progressFunc

	dir     string
	cluster *cluster.Cluster
	hooks   *proc.Process
	proxy   *wire.Proxy
	engine  *serve.Engine
	// alone is the bare client that takes the engine's place; nil if the engine is measured.
	alone *proc.Process
	// pprof is the address of the engine's profiles.
	pprof string

	client *dynamic.DynamicClient
	typed  *kubernetes.Clientset
	// floors are the rates of a bare client so far, in objects per second.
	floors []float64
}

// open starts the control plane and the other requirements of the workloads, except the engine. If
// it fails, the stage holds the processes that it has started.
func (s *stage) open(ctx context.Context) (err error) {
	s.dir, err = os.MkdirTemp("", "hookloop-bench-")
	if err != nil {
		return err
	}
	crds := []string{filepath.Join(cluster.Root(), "manifests", "crds")}
	s.cluster, err = cluster.New(ctx, cluster.Options{Dir: filepath.Join(s.dir, "cluster"), CRDs: crds})
	if err != nil {
		return err
	}
	config := rest.CopyConfig(s.cluster.Admin())
	config.UserAgent = "hookloop-bench"
	config.QPS = -1
	s.client, err = dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	// it costs the benchmark less, and the engine does not see it
	config.ContentType = "application/vnd.kubernetes.protobuf"
	s.typed, err = kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return s.startHook(ctx)
}

// startHook starts the hook and the proxy in front of it.
func (s *stage) startHook(ctx context.Context) (err error) {
	args := []string{"--listen", "127.0.0.1:0"}
	if s.transport == webhook || s.isBare() {
		args = append(args, "--webhook", fmt.Sprint("--gzip=", s.gzip))
	}
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o750); err != nil {
			return err
		}
		args = append(args, "--profile", s.profileOf("hook"))
	}
	var address string
	s.hooks, address, err = serve.Hook(ctx, proc.Spec{Name: "bench-hook", Path: s.hook, Args: args})
	if err != nil {
		return err
	}
	s.proxy, err = wire.Start(address)
	return err
}

// startEngine starts the process to measure: the engine, or the bare client.
func (s *stage) startEngine(ctx context.Context) (err error) {
	if s.isBare() {
		s.alone, err = proc.Start(proc.Spec{Name: "bench-bare", Path: s.bare, Args: []string{
			"--kubeconfig", s.cluster.Kubeconfig(), "--namespace", namespace, "--hook", "http://" + s.proxy.Address(),
		}})
		return err
	}
	s.engine, err = s.serve(ctx)
	return err
}

// isBare reports whether a bare client takes the engine's place.
func (s *stage) isBare() bool { return s.transport == bare }

// serve starts an engine with further flags. Profiles are its own from then on.
func (s *stage) serve(ctx context.Context, flags ...string) (*serve.Engine, error) {
	ports, err := cluster.FreePorts(1)
	if err != nil {
		return nil, err
	}
	s.pprof = fmt.Sprintf("127.0.0.1:%d", ports[0])
	flags = slices.Concat(engineFlags, []string{"--pprof-address=" + s.pprof}, flags)
	return serve.Start(ctx, serve.Config{Kubeconfig: s.cluster.Kubeconfig(), Flags: flags})
}

// measured is the process to measure.
func (s *stage) measured() *proc.Process {
	if s.alone != nil {
		return s.alone
	}
	if s.engine != nil {
		return s.engine.Process
	}
	return nil
}

// lastWords returns the errors in the engine's log, for the message of a failure.
func (s *stage) lastWords() string {
	if s.measured() == nil {
		return ""
	}
	output := s.measured().Output()
	if output == "" {
		return ""
	}
	return "; the log of the process ends:\n" + output[max(0, len(output)-2000):]
}

// close ends everything, dependents first.
func (s *stage) close() error {
	var errs []error
	if s.measured() != nil {
		errs = append(errs, s.measured().Stop(stopGrace))
	}
	if s.hooks != nil {
		errs = append(errs, s.hooks.Stop(stopGrace))
	}
	if s.proxy != nil {
		errs = append(errs, s.proxy.Close())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
