package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/test/cluster"
	"github.com/hookloop/hookloop/test/jaeger"
	"github.com/hookloop/hookloop/test/kubelet"
	"github.com/hookloop/hookloop/test/serve"
)

// notEmbedded excludes the controllers that an example runs by its own engine.
const notEmbedded = "demo.example.com/engine!=notes"

// environment runs what the examples need: a control plane, an engine, a gateway, and maybe a Jaeger.
type environment struct {
	dir string
	// bin is the folder of the cluster's kubectl.
	bin     string
	cluster *cluster.Cluster
	// reader is the kubeconfig of a user who may only read.
	reader  string
	engine  *serve.Engine
	gateway gateway
	// jaeger is nil if no example needs it.
	jaeger *jaeger.Jaeger
	cancel context.CancelFunc
	flows  sync.WaitGroup
}

// traced are the examples that read traces.
var traced = []string{"stubs", "matrixone"}

// open starts the control plane, an engine and the replacement for kubelets, and a Jaeger if one of
// the examples needs it. If it fails, the environment holds the processes that it has started.
func open(ctx context.Context, examples []string) (*environment, error) {
	s := &environment{}
	var err error
	s.dir, err = os.MkdirTemp("", "hookloop-prove-")
	if err != nil {
		return s, err
	}
	crds, err := filepath.Glob(filepath.Join(cluster.Root(), "examples", "*", "crd.yaml"))
	if err != nil {
		return s, err
	}
	crds = append([]string{filepath.Join(cluster.Root(), "manifests", "crds")}, crds...)
	s.cluster, err = cluster.New(ctx, cluster.Options{Dir: filepath.Join(s.dir, "cluster"), CRDs: crds})
	if err != nil {
		return s, err
	}
	s.bin, err = s.cluster.InstallKubectl()
	if err != nil {
		return s, err
	}
	if err := s.addReader(ctx); err != nil {
		return s, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.flows.Go(func() {
		fault := func(err error) { fmt.Println("stand-in kubelet:", err) }
		if err := kubelet.Run(background, s.cluster.Admin(), fault); err != nil {
			fault(err)
		}
	})
	s.gateway, err = newGateway(ctx, filepath.Join(s.dir, "gateway"))
	if err != nil {
		return s, err
	}
	var exporting []string
	if slices.ContainsFunc(examples, func(name string) bool { return slices.Contains(traced, name) }) {
		s.jaeger, err = jaeger.New(ctx, jaeger.Options{})
		if err != nil {
			return s, err
		}
		exporting = s.jaeger.Env()
	}
	s.engine, err = serve.Start(ctx, serve.Config{
		Kubeconfig: s.cluster.Kubeconfig(),
		Env:        exporting,
		Flags: append(
			s.gateway.flags(),
			"--client-go-qps=-1",
			"--discovery-interval=5s",
			"--target-label-selector="+notEmbedded,
		),
	})
	return s, err
}

// reader is the name of the user who may only read.
const reader = "reader"

// addReader makes the kubeconfig of the reader.
func (s *environment) addReader(ctx context.Context) error {
	config, err := s.cluster.User(reader)
	if err != nil {
		return err
	}
	s.reader = filepath.Join(s.dir, "reader.kubeconfig")
	if err := cluster.WriteKubeconfig(config, s.reader); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"create", "clusterrole", reader, "--verb=get,list,watch", "--resource=*.*"},
		{"create", "clusterrolebinding", reader, "--clusterrole=" + reader, "--user=" + reader},
	} {
		if err := s.run(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// env returns a script's environment: the cluster, kubectl, hookloop, the engine's gateway, and the
// Jaeger with its address for spans.
func (s *environment) env() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "PATH=") && !strings.HasPrefix(v, "KUBECONFIG=") {
			env = append(env, v)
		}
	}
	env = append(env, s.gateway.env()...)
	if s.jaeger != nil {
		env = append(env, "JAEGER="+s.jaeger.URL(), "JAEGER_OTLP="+s.jaeger.OTLP())
	}
	path := []string{s.bin, filepath.Dir(serve.Program("hookloop")), os.Getenv("PATH")}
	return append(env, "KUBECONFIG="+s.cluster.Kubeconfig(), "PATH="+strings.Join(path, ":"))
}

// close ends everything, dependents first.
func (s *environment) close() error {
	var errs []error
	if s.engine != nil {
		errs = append(errs, s.engine.Stop(10*time.Second))
	}
	if s.cancel != nil {
		s.cancel()
		s.flows.Wait()
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
