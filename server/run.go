package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/globallog"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/hookloop/hookloop/transports/inproc"
	"github.com/hookloop/hookloop/transports/recording"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// flushTimeout bounds the export of the last spans at the end.
const flushTimeout = 5 * time.Second

// runner runs the controllers: package engine's Engine.
type runner interface {
	// Warm keeps the caches filled until ctx ends, for a replica that waits to lead. Run may be called
	// meanwhile.
	Warm(ctx context.Context)
	// Warmed reports whether Warm has filled the caches.
	Warmed() bool
	// Run runs until ctx ends and all running work is finished.
	Run(ctx context.Context) error
	// Close ends the rest after Run and Warm have returned.
	Close()
	// Ready reports whether the caches are filled.
	Ready() bool
	// Problems are the reasons why parts of the engine do not work, one line each.
	Problems() []string
}

// process holds what one call of Run uses.
type process struct {
	Config
	rest    *rest.Config
	log     logr.Logger
	metrics *prometheus.Registry
	// perController registers metrics with the label controller.
	perController prometheus.Registerer
	// caches are counted in hookloop_cache_entries.
	caches map[string]func() int
	// syncs has the last syncs of parents.
	syncs   *lastsync.Store
	tracing tracing
	budget  *budget.Budget
	// recorder is nil without Config.Recording.
	recorder *recording.Recorder
	// budgetSource is the source of the budget's limit, for the log.
	budgetSource string
	inside       *inproc.Transport
	health       health
	// fence is nil without leader election.
	fence *engine.Fence
	// build wires the engine when the process leads or begins to wait for that.
	build func(context.Context) (runner, error)
}

// Run runs the controllers until ctx ends. It then starts no further sync, lets running syncs finish
// within the grace period, releases the lease, exports the last spans and returns nil.
//
// The error is a [*FlagError] if a value of c is invalid, and [ErrLeaseLost] if another replica may
// be leading. After any error the process should exit, so that it is started again. Logs go to
// c.Log.Output.
func Run(ctx context.Context, c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	logs := c.Log.Output
	if logs == nil {
		logs = os.Stderr
	}
	p, err := newProcess(ctx, c, logs)
	if err != nil {
		return err
	}
	return p.run(klog.NewContext(ctx, p.log))
}

// newProcess makes the parts of the process. It sends no request to the API server.
func newProcess(ctx context.Context, c Config, logs io.Writer) (*process, error) {
	log, err := c.Log.logger(logs)
	if err != nil {
		return nil, err
	}
	globallog.Set(log)
	p := &process{
		Config: c, log: log, metrics: newRegistry(c.Version), syncs: lastsync.New(lastsync.MaxParents),
	}
	p.perController = engine.PerController(p.metrics)
	p.tracing, err = newTracing(ctx, c.Tracing, c.Version, log, p.metrics)
	if err != nil {
		return nil, err
	}
	p.budget, err = p.memory()
	if err != nil {
		return nil, err
	}
	if err := c.checkControllers(); err != nil {
		return nil, err
	}
	p.inside, err = inproc.New(c.Hooks, p.budget)
	if err != nil {
		return nil, fmt.Errorf("Config.Hooks: %w", err)
	}
	p.inside.Build = p.Version
	p.rest, err = restConfig(c)
	if err != nil {
		return nil, err
	}
	if err := p.openOverlay(); err != nil {
		return nil, err
	}
	if err := p.openRecorder(); err != nil {
		return nil, err
	}
	newMemoryMetrics(p.metrics, p.budget.Usage)
	if c.LeaderElection.Enabled {
		p.fence = engine.NewFence()
		newLeaderMetrics(p.metrics, c.LeaderElection.ID, p.fence.Open)
	}
	p.build = p.wire
	return p, nil
}

// restConfig returns the configuration of clients of the API server.
func restConfig(c Config) (*rest.Config, error) {
	config, err := loadConfig(c)
	if err != nil {
		return nil, err
	}
	config.UserAgent = "hookloop/" + c.Version
	return config, nil
}

// unthrottled returns the configuration without a limit of requests, for leases and for the
// cache's lists and watches: they are few, and must not wait behind the writes of controllers.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter = nil
	config.QPS = -1
	return config
}

func loadConfig(c Config) (*rest.Config, error) {
	if c.Rest != nil {
		return rest.CopyConfig(c.Rest), nil
	}
	kubeconfig := c.Kubeconfig
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("--kubeconfig is empty, which needs the ServiceAccount of a Pod: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w", err)
	}
	return config, nil
}

// run starts the servers, runs the engine, and stops all. The servers outlive the engine, so that
// probes and scrapes see its end.
func (p *process) run(ctx context.Context) (err error) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	group, serving := errgroup.WithContext(serving)
	defer func() {
		stop()
		if waited := group.Wait(); err == nil {
			err = waited
		}
		p.flush(serving)
	}()
	for _, l := range p.listeners() {
		address, err := l.start(serving, group)
		if err != nil {
			return err
		}
		if address != nil {
			p.log.Info("listening", "flag", l.flag, "address", address.String())
		}
	}
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(serving, cancel)() // a server that fails ends the process
	defer context.AfterFunc(ctx, p.health.stopping)()
	p.log.Info("starting", "version", p.Version)
	p.log.Info("memory budget", "bytes", p.budget.Limit(), "source", p.budgetSource, "softLimit", softLimit())
	for _, flag := range p.unused() {
		p.log.Info("the flag is accepted for compatibility and has no effect", "flag", flag)
	}
	defer p.log.Info("stopped")
	if err := p.follow(klog.NewContext(serving, p.log), group); err != nil {
		return err
	}
	return p.lead(working)
}

func (p *process) listeners() []listener {
	return []listener{
		{"health-probe-bind-address", p.HealthAddress, p.health.handler()},
		{"metrics-address", p.MetricsAddress, metricsHandler(p.metrics, p.syncs)},
		{"pprof-address", p.PprofAddress, pprofHandler()},
	}
}

// lead runs the engine, after the election if there is one.
func (p *process) lead(ctx context.Context) error {
	if !p.LeaderElection.Enabled {
		return p.work(ctx)
	}
	lock, err := p.LeaderElection.lock(unthrottled(p.rest))
	if err != nil {
		return err
	}
	return p.campaign(ctx, lock)
}

// campaign runs the engine when this replica has the lease.
func (p *process) campaign(ctx context.Context, lock resourcelock.Interface) error {
	if !p.LeaderElection.WarmStandby {
		p.health.standby()
		return p.LeaderElection.lead(ctx, lock, p.fence, func() {}, p.work)
	}
	s := newStandby(p)
	defer s.stop()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := p.LeaderElection.lead(ctx, lock, p.fence, func() { s.begin(ctx, cancel) }, s.work)
	var failed *buildError
	if errors.As(context.Cause(ctx), &failed) {
		return errors.Join(failed.err, err)
	}
	return err
}

// work wires and runs the engine.
func (p *process) work(ctx context.Context) error {
	e, err := p.build(ctx)
	if ctx.Err() != nil && err != nil {
		return nil // asked to stop before there was anything to stop
	}
	if err != nil {
		return err
	}
	defer e.Close()
	p.health.working(e)
	return e.Run(ctx)
}

// flush exports the remaining spans.
func (p *process) flush(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	if err := p.tracing.stop(ctx); err != nil {
		p.log.Info("the last traces were not exported", "error", err.Error())
	}
}

// Signals returns a context that ends when the process receives SIGTERM or SIGINT. A second signal
// ends the process immediately, with exit code 1. Call stop to handle signals as before.
func Signals(ctx context.Context) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	received := make(chan os.Signal, 2)
	signal.Notify(received, syscall.SIGTERM, os.Interrupt)
	go func() { // ends with the process, or at its second signal
		<-received
		cancel()
		<-received
		os.Exit(1)
	}()
	return ctx, func() { signal.Stop(received); cancel() }
}
