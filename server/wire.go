package server

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/supervisor"
	"github.com/hookloop/hookloop/transports/recording"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/fallback"
	"github.com/hookloop/hookloop/transports/grpc"
	"github.com/hookloop/hookloop/engine/internal/ask/middleware"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"github.com/hookloop/hookloop/transports/webhook"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

const (
	// scope is the instrumentation scope of the spans.
	scope = "github.com/hookloop/hookloop"
	// component is the reporting component of Events.
	component = "hookloop"
	// retryInterval is the time between two tries to reach the API server at start.
	retryInterval = 2 * time.Second
)

// app is the engine with its cache, discovery and Events.
type app struct {
	// supervisor runs the declared controllers; nil for none.
	supervisor *supervisor.Supervisor
	// group runs the controllers in Go.
	group   *host.Group
	host    *host.Process
	gateway gatewayServer
	budget  *budget.Budget
	// recorder is nil if nothing is recorded.
	recorder *recording.Recorder
	// begun begins what runs as long as the app: end ends it, and tasks waits for it.
	begun sync.Once
	end   context.CancelFunc
	tasks sync.WaitGroup
	// warmed reports that the app has waited to lead.
	warmed atomic.Bool
}

// Ready reports whether the caches of all controllers are filled.
func (a *app) Ready() bool {
	return a.group.Ready() && (a.supervisor == nil || a.supervisor.Ready())
}

// Problems are the reasons why controllers in Go do not run. Declared controllers report theirs in
// conditions.
func (a *app) Problems() []string { return a.group.Problems() }

// Warm keeps the caches filled for a replica that waits to lead, until ctx ends: with the resources
// that all controllers watch. It writes nothing and asks no hook. Run may be called meanwhile.
func (a *app) Warm(ctx context.Context) {
	a.warmed.Store(true)
	a.begin(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.group.Warm(ctx) })
	if a.supervisor != nil {
		wait.Go(func() { a.supervisor.Warm(ctx) })
	}
	wait.Wait()
}

// Warmed reports whether Warm has filled the caches.
func (a *app) Warmed() bool {
	return a.group.Warmed() && (a.supervisor == nil || a.supervisor.Warmed())
}

// Run runs the controllers until ctx ends. Views that are older than the call must first show what
// another leader has written.
func (a *app) Run(ctx context.Context) error {
	a.begin(ctx)
	if a.warmed.Load() {
		a.host.Cache.Revalidate()
		if err := a.host.Discovery.Refresh(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "some resources are not known yet")
		}
	}
	recording, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.recorder.Run(recording) })
	defer wait.Wait()
	defer stop()
	return a.gateway.serveWhile(ctx, a.control)
}

// begin begins what outlives the controllers: discovery and the measurement of memory.
func (a *app) begin(ctx context.Context) {
	a.begun.Do(func() {
		ctx, a.end = context.WithCancel(context.WithoutCancel(ctx))
		a.tasks.Go(func() { a.host.Discovery.Run(ctx) })
		a.tasks.Go(func() { reportCaches(ctx, a.budget, a.host.Cache.Stats, clock.RealClock{}) })
		a.tasks.Go(func() { watchHeap(ctx, klog.FromContext(ctx), readHeap, clock.RealClock{}) })
	})
}

// Close ends the watches and the recording of Events, after Run and Warm have returned.
func (a *app) Close() {
	a.begun.Do(func() {}) // nothing begins any more
	if a.end != nil {
		a.end()
	}
	a.tasks.Wait()
	a.host.Close()
}

// control runs all controllers until ctx ends, or the supervisor fails.
func (a *app) control(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	wait.Go(func() { a.group.Run(ctx) })
	defer wait.Wait()
	defer cancel()
	if a.supervisor == nil {
		<-ctx.Done()
		return nil
	}
	return a.supervisor.Run(ctx)
}

// transports returns the openers of hooks by the fields of their spec.
func (p *process) transports(g gatewayServer, streams *stream.Metrics) hook.Openers {
	overGRPC := &grpc.Transport{Build: p.Version, Metrics: streams, Memory: p.budget, Secrets: p.secrets()}
	p.cacheEntries.add("stream-arrivals", overGRPC.CachedArrivals)
	overHTTP := &webhook.Transport{Memory: p.budget, Secrets: p.secrets()}
	both := &fallback.Transport{
		Preferred: fallback.Side{Name: "grpc", Open: overGRPC.Open},
		Fallback:  fallback.Side{Name: "webhook", Open: overHTTP.Open},
		Metrics:   fallback.NewMetrics(p.series),
	}
	all := hook.Openers{
		"webhook": overHTTP.Open, "grpc": overGRPC.Open, "inproc": p.inside.Open,
		hook.Composed(both.Preferred.Name, both.Fallback.Name): both.Open,
	}
	if g.Gateway == nil {
		return all
	}
	overGRPC.Worker = g.Open
	return g.Openers(all)
}

// wire makes the engine. It returns after the first answer of the API server, with an error of the
// configuration, or with ctx's error.
func (p *process) wire(ctx context.Context) (engine, error) {
	client, err := kubernetes.NewForConfig(p.rest)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	cluster, err := clusterUID(ctx, client)
	if err != nil {
		return nil, err
	}
	shared, err := p.host(ctx, client, cluster)
	if err != nil {
		return nil, err
	}
	a := &app{host: shared, budget: p.budget, recorder: p.recorder}
	if err := p.assemble(ctx, a, client); err != nil {
		shared.Close()
		return nil, err
	}
	return a, nil
}

// assemble adds the controllers to the engine.
func (p *process) assemble(ctx context.Context, a *app, client kubernetes.Interface) (err error) {
	if a.group, err = host.NewGroup(a.host.Host, p.Controllers...); err != nil {
		return fmt.Errorf("Config.Controllers: %w", err)
	}
	streams := stream.NewMetrics(p.metrics)
	if a.gateway, err = p.gateway(ctx, streams); err != nil {
		return err
	}
	if a.gateway.Gateway != nil {
		a.host.Triggers = a.gateway.subscribe
	}
	if p.ControllersOnly {
		return nil
	}
	settings, err := p.supervise(a.host, p.recorder.Openers(p.transports(a.gateway, streams)))
	if err != nil {
		return err
	}
	settings.Lookup, settings.May = lookup(client), may(client)
	if p.overlay == nil { // a process does not know the controllers of another process's files
		settings.Finalizers = supervisor.NewFinalizerRecords(settings.Writer, p.home())
	}
	a.supervisor = supervisor.New(settings)
	p.cacheEntries.add("related-rules", a.supervisor.RelatedRules)
	p.cacheEntries.add("related-answers", a.supervisor.RelatedAnswers)
	return nil
}

// host returns what all controllers of the process share.
func (p *process) host(ctx context.Context, client kubernetes.Interface, cluster types.UID) (*host.Process, error) {
	tracer := p.tracing.provider.Tracer(scope, trace.WithInstrumentationVersion(p.Version))
	writer, err := act.NewWriter(act.Settings{
		Config: p.rest, Tracer: tracer, Meter: newWriteMetrics(p.metrics), Clock: clock.RealClock{}, Fence: p.fence,
		Strict: p.FieldValidation == StrictFields,
	})
	if err != nil {
		return nil, err
	}
	newPaceMetrics(p.metrics, writer.Pace)
	p.circuits = newCircuitMetrics(p.series)
	shared, err := host.New(ctx, host.Settings{
		Config: p.rest, Reads: unthrottled(p.rest), Client: client, Component: component,
		EventsQPS: p.EventsQPS, EventsBurst: p.EventsBurst, EventsLogOnly: p.logOnly(),
		StaleAfter:        p.StaleViewAfter,
		DiscoveryInterval: p.DiscoveryInterval, Writer: writer,
		Host: host.Host{
			Tracer: tracer, Clock: clock.RealClock{}, Scheme: p.Scheme, Workers: p.Workers, Waits: p.waits,
			GracePeriod: p.GracePeriod, QueueMetrics: newQueueMetrics(p.series), ClusterUID: cluster,
			Sampled: p.tracing.sampled, Recorder: newReconcileMetrics(p.series, p.syncs, time.Now), Registry: p.series,
			Circuit: p.circuit(), Circuits: p.circuits, CountCache: p.cacheEntries.add,
		},
	})
	if err != nil {
		return nil, err
	}
	newCacheMetrics(p.metrics, shared.Cache.Stats, writer.Echoes.Stats)
	p.cacheEntries.add("served-resources", shared.Discovery.Len)
	if p.Work != nil {
		shared.Gate = p.Work.gate
		p.Work.observe(shared)
	}
	return shared, nil
}

// circuit returns the settings of all circuits.
func (p *process) circuit() circuit.Settings {
	return circuit.Settings{Limit: p.RewriteLimit, Pause: p.RewritePause}
}

// supervise returns the supervisor's settings. It starts nothing.
func (p *process) supervise(shared *host.Process, transports hook.Openers) (supervisor.Settings, error) {
	selector, err := labels.Parse(p.TargetSelector)
	if err != nil {
		return supervisor.Settings{}, fmt.Errorf("--target-label-selector: %w", err)
	}
	return supervisor.Settings{
		Cache:     shared.Cache,
		Discovery: shared.Discovery,
		Events:    shared.Events,
		Openers: middleware.Openers(transports, middleware.Settings{
			Tracer: shared.Tracer, Metrics: middleware.NewMetrics(p.series),
		}),
		Writer:         shared.Writer,
		Status:         report.NewStatus(shared.Writer),
		Recorder:       recorder{newSyncMetrics(p.series, p.circuits), p.syncs, shared.Clock.Now},
		Observer:       p.Observer,
		Gate:           shared.Gate,
		Tracer:         shared.Tracer,
		Clock:          shared.Clock,
		Workers:        p.Workers,
		Waits:          p.waits,
		Apply:          plan.Apply{ServerSide: p.ApplyStrategy == ServerSideApply, Manager: p.FieldManager},
		DeletionLimit:  p.deletionLimit(),
		Account:        accounts(p.budget),
		Circuit:        p.circuit(),
		TargetSelector: selector,
		GracePeriod:    p.GracePeriod,

		CustomizeMaxAge: p.CustomizeMaxAge,
		QueueMetrics:    shared.QueueMetrics,
		Stopped:         p.series.forget,
		Intercepts:      newInterceptMetrics(p.series),
		ClusterUID:      shared.ClusterUID,
		Sampled:         p.tracing.sampled,
	}, nil
}

// clusterUID waits for an answer of the API server and returns the UID of the namespace
// kube-system, which identifies the cluster. It is empty if reading it is forbidden; then trace ids
// are not distinct between clusters.
func clusterUID(ctx context.Context, client kubernetes.Interface) (uid types.UID, err error) {
	log := klog.FromContext(ctx)
	err = wait.PollUntilContextCancel(ctx, retryInterval, true, func(ctx context.Context) (bool, error) {
		namespace, err := client.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
		switch {
		case err == nil:
			uid = namespace.UID
			return true, nil
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			log.Info("the cluster has no UID for traces", "error", err.Error())
			return true, nil
		default:
			log.Info("waiting for the API server", "error", err.Error())
			return false, nil
		}
	})
	return uid, err
}
