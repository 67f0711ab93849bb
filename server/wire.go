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
	"github.com/hookloop/hookloop/internal/transports/grpc"
	"github.com/hookloop/hookloop/internal/transports/stack"
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
	// scope names what makes the spans.
	scope = "github.com/hookloop/hookloop"
	// component is the source of Events.
	component = "hookloop"
	// knock is the time between two tries to reach the API server at start.
	knock = 2 * time.Second
)

// wired is the engine with what it stands on.
type wired struct {
	*supervisor.Supervisor
	cache     *cache.Cache
	discovery *discovery.Discovery
	events    *report.Events
	door      door
	budget    *budget.Budget
}

// Run works until ctx ends; what the supervisor stands on outlives it.
func (w *wired) Run(ctx context.Context) error {
	defer w.cache.Close()
	defer w.events.Stop()
	following, stop := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { w.discovery.Run(following) })
	wait.Go(func() { reportCaches(following, w.budget, w.cache.Stats, clock.RealClock{}) })
	defer wait.Wait()
	defer stop()
	return w.door.during(ctx, w.Supervisor.Run)
}

// transports are all ways to reach a hook, by the field of its spec.
func (p *process) transports(d door, streams *stream.Metrics) hook.Openers {
	overGRPC := &grpc.Transport{Build: p.Version, Metrics: streams, Memory: p.budget, Secrets: p.secrets()}
	overHTTP := &webhook.Transport{Memory: p.budget, Secrets: p.secrets()}
	all := hook.Openers{"webhook": overHTTP.Open, "grpc": overGRPC.Open, "inproc": p.inside.Open}
	if d.Gateway == nil {
		return all
	}
	overGRPC.Worker = d.Open
	return d.Openers(all)
}

// wire makes the engine. It returns when the API server has answered for the first time, or with an
// error of the configuration, or ctx's.
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
	d, err := p.door(ctx, streams)
	if err != nil {
		return nil, err
	}
	settings, err := p.supervise(cluster, p.transports(d, streams))
	if err != nil {
		return nil, err
	}
	objects, err := cache.New(cache.Settings{Config: unthrottled(p.rest), StaleAfter: p.StaleViewAfter})
	if err != nil {
		return nil, err
	}
	p.metrics.MustRegister(newCacheMetrics(objects.Stats))
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
	return &wired{supervisor.New(settings), objects, served, events, d, p.budget}, nil
}

// supervise gathers what the supervisor needs and what starts nothing.
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
		Openers:        stack.Openers(transports, stack.Settings{Tracer: tracer, Metrics: stack.NewMetrics(p.series)}),
		Writer:         writer,
		Status:         report.NewStatus(writer, tracer, writes),
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
		GracePeriod:    p.GracePeriod, CustomizeMaxAge: p.CustomizeMaxAge,
		QueueMetrics: newQueueMetrics(p.series),
		Stopped:      p.series.forget,
		Intercepts:   newInterceptMetrics(p.series),
		ClusterUID:   cluster,
		Sampled:      p.tracing.sampled,
	}, nil
}

// clusterUID waits until the API server answers and returns the UID of the namespace kube-system,
// which stands for the cluster. Where reading it is not allowed it is empty: ids of traces are then
// not distinct between clusters.
func clusterUID(ctx context.Context, client kubernetes.Interface) (uid types.UID, err error) {
	log := klog.FromContext(ctx)
	err = wait.PollUntilContextCancel(ctx, knock, true, func(ctx context.Context) (bool, error) {
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
