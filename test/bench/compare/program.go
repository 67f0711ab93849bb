package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/hookloop/hookloop/internal/proc"
	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/serve"
	"k8s.io/client-go/rest"
)

// program is one way to write the controller.
type program struct {
	// name is the argument of -programs, title that of the tables.
	name, title string
	// binary is the file in .cache/bin; args come before the flags.
	binary string
	args   []string
	// hook is the binary of the hook; empty for none.
	hook string
	// sources are the files that a user writes, relative to this folder.
	sources []string
	// syncs is the metric that counts reconciles.
	syncs string
}

// programs are all ways, in the order of the tables.
var programs = []program{
	{
		name: "controller-runtime", title: "controller-runtime", binary: "compare-controller-runtime",
		sources: []string{"controllerruntime/main.go", "controllerruntime/reconciler.go"},
		syncs:   "controller_runtime_reconcile_total",
	},
	{
		name: "runtime", title: "engine/controller", binary: "compare-runtime",
		sources: []string{"runtime/main.go", "runtime/reconcile.go"},
		syncs:   "hookloop_reconcile_duration_seconds_count",
	},
	{
		name: "actor", title: "engine/actor", binary: "compare-actor",
		sources: []string{"actor/main.go", "actor/actor.go"},
		syncs:   "hookloop_reconcile_duration_seconds_count",
	},
	{
		name: "hook", title: "hook", binary: "hookloop", hook: "compare-hook",
		args:    []string{"serve", "--client-go-qps=5000", "--client-go-burst=5000", "--workers=10"},
		sources: []string{"hook/main.go", "hook/controller.yaml"},
		syncs:   "hookloop_sync_duration_seconds_count",
	},
}

// replica is a running process of a program.
type replica struct {
	*proc.Process
	// user is its name in the audit log.
	user            string
	health, metrics string
}

const (
	// namespace is the namespace of all objects, and of the Lease.
	namespace = "compare"
	// leaseName is the name of the Lease.
	leaseName = "compare"
)

// start starts a replica as a user of its own, and waits until it is ready. With a proxy it uses
// that one's credentials.
func (s *stage) start(ctx context.Context, user string, proxy *rest.Config, flags ...string) (*replica, error) {
	config := proxy
	if config == nil {
		var err error
		config, err = s.cluster.User(user, "system:masters")
		if err != nil {
			return nil, err
		}
	}
	kubeconfig := filepath.Join(s.dir, user+".kubeconfig")
	if err := cluster.WriteKubeconfig(config, kubeconfig); err != nil {
		return nil, err
	}
	ports, err := cluster.FreePorts(2)
	if err != nil {
		return nil, err
	}
	r := &replica{
		user:   user,
		health: fmt.Sprintf("127.0.0.1:%d", ports[0]), metrics: fmt.Sprintf("127.0.0.1:%d", ports[1]),
	}
	args := append(append([]string{}, s.program.args...),
		"--kubeconfig", kubeconfig, "--health-probe-bind-address", r.health, "--metrics-address", r.metrics)
	r.Process, err = proc.Start(proc.Spec{
		Name: s.program.name, Path: filepath.Join(s.bin, s.program.binary), Args: append(args, flags...),
	})
	if err != nil {
		return nil, err
	}
	s.replicas = append(s.replicas, r)
	ctx, cancel := context.WithTimeout(ctx, serve.StartTimeout)
	defer cancel()
	return r, r.Await(ctx, func(ctx context.Context) error {
		_, err := serve.Fetch(ctx, "http://"+r.health+"/readyz")
		return err
	})
}

// election are the flags of a replica that competes for the Lease.
func election() []string {
	return []string{"--leader-election", "--leader-election-namespace=" + namespace, "--leader-election-id=" + leaseName}
}

// startHook starts the hook, at the address of the first start.
func (s *stage) startHook(ctx context.Context) (err error) {
	if s.program.hook == "" {
		return nil
	}
	if s.hookAddress == "" {
		s.hookAddress = "127.0.0.1:0"
	}
	spec := proc.Spec{
		Name: s.program.hook, Path: filepath.Join(s.bin, s.program.hook), Args: []string{"--listen", s.hookAddress},
	}
	s.hook, s.hookAddress, err = serve.Hook(ctx, spec)
	return err
}

// killAll kills the hook and all replicas.
func (s *stage) killAll() error {
	var errs []error
	for _, r := range s.replicas {
		errs = append(errs, r.Kill())
	}
	s.replicas = nil
	if s.hook != nil {
		errs = append(errs, s.hook.Kill())
	}
	s.hook = nil
	return errors.Join(errs...)
}

// startAll starts the hook and one replica.
func (s *stage) startAll(ctx context.Context, proxy *rest.Config) error {
	if err := s.startHook(ctx); err != nil {
		return err
	}
	_, err := s.start(ctx, s.program.name, proxy)
	return err
}

// restart kills everything and starts it again, with or without a proxy.
func (s *stage) restart(ctx context.Context, proxy *rest.Config) error {
	if err := s.killAll(); err != nil {
		return err
	}
	return s.startAll(ctx, proxy)
}

// stopGrace is the time that a process may take to end.
const stopGrace = 10 * time.Second
