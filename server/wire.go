package server

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/circuit"
	"github.com/hookloop/hookloop/internal/engine/discovery"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"github.com/hookloop/hookloop/internal/engine/supervisor"
	"github.com/hookloop/hookloop/internal/transports/budget"
	"github.com/hookloop/hookloop/internal/transports/fallback"
	"github.com/hookloop/hookloop/internal/transports/grpc"
	"github.com/hookloop/hookloop/internal/transports/middleware"
	"github.com/hookloop/hookloop/internal/transports/stream"
	"github.com/hookloop/hookloop/internal/transports/webhook"
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
	*supervisor.Supervisor
	cache     *cache.Cache
	discovery *discovery.Discovery
	events    *report.Events
	gateway   gatewayServer
	budget    *budget.Budget
}

// Run runs until ctx ends; cache, discovery and Events outlive the supervisor.
func (a *app) Run(ctx context.Context) error {
	defer a.cache.Close()
	defer a.events.Stop()
	following, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { a.discovery.Run(following) })
	wait.Go(func() { reportCaches(following, a.budget, a.cache.Stats, clock.RealClock{}) })
	defer wait.Wait()
	defer stop()
	return a.gateway.serveWhile(ctx, a.Supervisor.Run)
}

// transports returns the openers of hooks by the fields of their spec.
func (p *process) transports(g gatewayServer, streams *stream.Metrics) hook.Openers {
	overGRPC := &grpc.Transport{Build: p.Version, Metrics: streams, Memory: p.budget, Secrets: p.secrets()}
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
	streams := stream.NewMetrics(p.metrics)
	g, err := p.gateway(ctx, streams)
	if err != nil {
		return nil, err
	}
	settings, err := p.supervise(cluster, p.transports(g, streams))
	if err != nil {
		return nil, err
	}
	objects, err := cache.New(cache.Settings{Config: unthrottled(p.rest), StaleAfter: p.StaleViewAfter})
	if err != nil {
		return nil, err
	}
	newCacheMetrics(p.metrics, objects.Stats)
	served := discovery.New(discovery.Settings{
		Client: client.Discovery(), Cache: objects, Clock: clock.RealClock{}, Interval: p.DiscoveryInterval,
	})
	if err := served.Refresh(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "some resources are not known yet")
	}
	events := report.NewEvents(context.WithoutCancel(ctx), report.EventSettings{
		Client: client.CoreV1(), Component: component, QPS: p.EventsQPS, Burst: p.EventsBurst,
	})
	settings.Cache, settings.Discovery, settings.Events, settings.Lookup = objects, served, events, lookup(client)
	settings.May = may(client)
	settings.Finalizers = supervisor.NewFinalizerRecords(settings.Writer, p.home())
	return &app{supervisor.New(settings), objects, served, events, g, p.budget}, nil
}

// supervise returns the supervisor's settings. It starts nothing.
func (p *process) supervise(cluster types.UID, transports hook.Openers) (supervisor.Settings, error) {
	tracer := p.tracing.provider.Tracer(scope, trace.WithInstrumentationVersion(p.Version))
	writes := newWriteMetrics(p.metrics)
	writer, err := act.NewWriter(act.Settings{
		Config: p.rest, Tracer: tracer, Meter: writes, Clock: clock.RealClock{}, Fence: p.fence,
		Strict: p.FieldValidation == StrictFields,
	})
	if err != nil {
		return supervisor.Settings{}, err
	}
	selector, err := labels.Parse(p.TargetSelector)
	if err != nil {
		return supervisor.Settings{}, fmt.Errorf("--target-label-selector: %w", err)
	}
	return supervisor.Settings{
		Openers: middleware.Openers(transports, middleware.Settings{
			Tracer: tracer, Metrics: middleware.NewMetrics(p.series),
		}),
		Writer:         writer,
		Status:         report.NewStatus(writer),
		Recorder:       newSyncMetrics(p.series),
		Tracer:         tracer,
		Clock:          clock.RealClock{},
		Workers:        p.Workers,
		Waits:          p.waits,
		Apply:          plan.Apply{ServerSide: p.ApplyStrategy == ServerSideApply, Manager: p.FieldManager},
		DeletionLimit:  p.deletionLimit(),
		Account:        accounts(p.budget),
		Circuit:        circuit.Settings{Limit: p.RewriteLimit, Pause: p.RewritePause},
		TargetSelector: selector,
		GracePeriod:    p.GracePeriod,

		CustomizeMaxAge: p.CustomizeMaxAge,
		QueueMetrics:    newQueueMetrics(p.series),
		Stopped:         p.series.forget,
		Intercepts:      newInterceptMetrics(p.series),
		ClusterUID:      cluster,
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
