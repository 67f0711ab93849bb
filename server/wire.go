package server

import (
	"context"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports"
	"github.com/hookloop/hookloop/transports/fallback"
	"github.com/hookloop/hookloop/transports/gateway"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/hookloop/hookloop"

// app is the engine beside the gateway and the recorder.
type app struct {
	*engine.Engine
	process *process
	gateway *gateway.Server // nil without one
	heap    background
}

// Warm keeps the caches filled until ctx ends, for a replica that waits to lead. Its heap is as large
// as the leader's.
func (a *app) Warm(ctx context.Context) {
	a.watchHeap(ctx)
	a.Engine.Warm(ctx)
}

// Close stops what outlives Run and Warm. Call it when they have returned.
func (a *app) Close() {
	a.heap.stop()
	a.Engine.Close()
}

func (a *app) watchHeap(ctx context.Context) {
	a.heap.begin(ctx, func(ctx context.Context) {
		watchHeap(ctx, klog.FromContext(ctx), readHeap, clock.RealClock{})
	})
}

// background is a task that outlives the contexts of those who begin it.
type background struct {
	once sync.Once
	end  context.CancelFunc
	task sync.WaitGroup
}

// begin runs f in the background until stop is called. Only the first call has an effect.
func (b *background) begin(ctx context.Context, f func(context.Context)) {
	b.once.Do(func() {
		ctx, b.end = context.WithCancel(context.WithoutCancel(ctx))
		b.task.Go(func() { f(ctx) })
	})
}

// stop ends the task and waits for it. After stop, no task begins.
func (b *background) stop() {
	b.once.Do(func() {})
	if b.end != nil {
		b.end()
	}
	b.task.Wait()
}

// Run runs the controllers, the gateway and the recorder until ctx ends.
func (a *app) Run(ctx context.Context) error {
	a.watchHeap(ctx)
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.process.recorder.Run(ctx) })
	defer wait.Wait()
	defer cancel()
	if a.gateway == nil {
		return a.Engine.Run(ctx)
	}
	return a.gateway.ServeWhile(ctx, a.Engine.Run)
}

// wire connects the engine with the transports.
func (p *process) wire(ctx context.Context) (runner, error) {
	selector, err := labels.Parse(p.TargetSelector)
	if err != nil {
		return nil, fmt.Errorf("--target-label-selector: %w", err)
	}
	p.countCache("last-syncs", p.syncs.Len)
	p.countCache("spans", p.tracing.waiting)
	streams := transports.NewStreamMetrics(p.metrics)
	a := &app{process: p}
	a.gateway, err = p.gateway(ctx, streams)
	if err != nil {
		return nil, err
	}
	config := engine.Config{
		Rest: p.rest, ClientQPS: p.ClientQPS, ClientBurst: p.ClientBurst,
		Openers:     p.recorder.Openers(p.transports(a.gateway, streams)),
		Version:     p.Version,
		Controllers: p.Controllers, ControllersOnly: p.ControllersOnly, Scheme: p.Scheme,
		Workers: p.Workers, SlowHookWaits: p.SlowHookWaits, DeletionLimit: p.DeletionLimit,
		RewriteLimit: p.RewriteLimit, RewritePause: p.RewritePause, TargetSelector: selector,
		ServerSideApply: p.ApplyStrategy == ServerSideApply, FieldManager: p.FieldManager,
		StrictFields: p.FieldValidation == StrictFields, DiscoveryInterval: p.DiscoveryInterval,
		StaleAfter: p.StaleViewAfter, CustomizeMaxAge: p.CustomizeMaxAge, EventsQPS: p.EventsQPS,
		EventsBurst: p.EventsBurst, EventsLogOnly: p.logOnly(), GracePeriod: p.GracePeriod,
		Tracer:  p.tracing.provider.Tracer(scope, trace.WithInstrumentationVersion(p.Version)),
		Sampled: p.tracing.sampled, Registry: p.perController, Caches: p.caches, Budget: p.budget, LastSyncs: p.syncs,
		Fence: p.fence, Observer: p.Observer, Steps: p.Steps,
	}
	if p.Declared == nil { // a process does not know the controllers of another process's files
		config.FinalizersIn = p.home()
	}
	if a.gateway != nil {
		config.Triggers = a.subscribe
	}
	a.Engine, err = engine.New(ctx, config)
	return a, err
}

// countCache adds a cache to hookloop_cache_entries. It must be called before the engine is made.
func (p *process) countCache(name string, entries func() int) {
	if p.caches == nil {
		p.caches = map[string]func() int{}
	}
	p.caches[name] = entries
}

// subscribe has a controller in Go get the triggers of a worker.
func (a *app) subscribe(controller, worker string, f func(engine.Trigger) (int, error)) (cancel func()) {
	return a.gateway.SubscribeLimited("Controller", controller, worker, func(t hook.Trigger) (int, error) {
		return f(engine.Trigger{Match: t.Match(), LowPriority: t.LowPriority, Reason: t.Reason})
	})
}

// gateway returns the gateway for hooks that dial in, if it is configured.
func (p *process) gateway(ctx context.Context, streams *transports.StreamMetrics) (*gateway.Server, error) {
	if off(p.Gateway.Address) {
		return nil, nil
	}
	return gateway.NewServer(gateway.ServerConfig{
		Address: p.Gateway.Address, TLSCert: p.Gateway.TLSCert, TLSKey: p.Gateway.TLSKey, ClientCA: p.Gateway.ClientCA,
		Audience: p.Gateway.Audience, Build: p.Version, Rest: p.rest, Reflection: p.Log.Devel,
		Log: klog.FromContext(ctx).WithName("gateway"), Metrics: streams, Memory: p.budget,
		CountCache: p.countCache,
	})
}

// transports returns the openers of hooks by the names of their transports.
func (p *process) transports(g *gateway.Server, streams *transports.StreamMetrics) hook.Openers {
	return transports.Openers(transports.Config{
		Version: p.Version, Memory: p.budget, Secrets: p.secrets(), Sockets: p.HookSocketFolders, Streams: streams,
		Fallbacks: fallback.NewMetrics(p.perController), Functions: p.inside, Gateway: g, More: p.Transports,
		CountCache: p.countCache,
	})
}
