// Package engine runs controllers: those that objects or files declare, which ask hooks, and those
// that a Go program declares (packages controller and actor).
//
// It is the only door to the packages below engine/internal. A program that wants logs, flags,
// probes and leader election as well uses package server, which is built on this one. The engine
// knows hooks by the port alone (package hook): Config.Openers has the transports. An Engine is
// safe for concurrent use.
package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/ask/customize"
	"github.com/hookloop/hookloop/engine/internal/ask/middleware"
	"github.com/hookloop/hookloop/engine/internal/host"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/engine/internal/metrics"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/supervisor"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/internal/lastsync"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Defaults of Config.
const (
	DefaultStaleAfter      = cache.DefaultStaleAfter
	DefaultCustomizeMaxAge = customize.DefaultMaxAge
)

const (
	component     = "hookloop"
	retryInterval = 2 * time.Second
)

// ErrStopNow is the cause of a context whose end lets no running sync finish.
var ErrStopNow = loop.ErrStopNow

// RestartAnnotation on a controller restarts it when its value changes, and all parents are synced.
const RestartAnnotation = supervisor.RestartAnnotation

// Fence stops all writes of a replica that no longer leads. A nil Fence is always open.
type Fence = act.Fence

// ErrFenced is the error of a write that a closed [Fence] refused or cancelled. The object is
// unchanged, or the API server had applied the write when the fence closed.
var ErrFenced = act.ErrFenced

// NewFence returns a closed Fence.
func NewFence() *Fence { return act.NewFence() }

// Trigger is a request from outside of the cluster to reconcile objects of a controller in Go.
type Trigger = host.Trigger

// Config is the configuration of an Engine. Rest is required; the zero value of any other field is
// its default or turns something off.
type Config struct {
	// Rest reaches the API server.
	Rest *rest.Config
	// ClientQPS and ClientBurst are one limit of requests for all controllers; 0 sets none.
	ClientQPS   float64
	ClientBurst int
	// Openers are the transports, by the fields of a hook's spec. The engine adds spans, metrics and
	// recovery to each.
	Openers hook.Openers
	// Controllers are controllers in Go; ControllersOnly runs them alone.
	Controllers     []controller.Declared
	ControllersOnly bool
	Scheme          *runtime.Scheme

	Workers         int
	SlowHookWaits   int
	DeletionLimit   string
	RewriteLimit    int
	RewritePause    time.Duration
	TargetSelector  labels.Selector
	ServerSideApply bool
	FieldManager    string
	StrictFields    bool

	DiscoveryInterval time.Duration
	StaleAfter        time.Duration
	CustomizeMaxAge   time.Duration
	EventsQPS         float32
	EventsBurst       int
	EventsLogOnly     func(schema.GroupVersionKind) bool
	GracePeriod       time.Duration
	// FinalizersIn is the namespace of the record of finalizers; empty keeps none.
	FinalizersIn string

	Tracer   trace.Tracer
	Sampled  func(trace.TraceID) bool
	Registry prometheus.Registerer
	// Caches are further caches to count in hookloop_cache_entries, by the label of the cache.
	Caches map[string]func() int
	// Budget bounds the memory of the process; nil for no limit.
	Budget *budget.Budget
	// LastSyncs takes the last sync of each parent.
	LastSyncs *lastsync.Store
	Fence     *Fence
	Observer  Observer
	Steps     *Steps
	// Triggers subscribes a controller in Go to the triggers of a worker; nil without a gateway.
	Triggers func(controller, worker string, f func(Trigger) (int, error)) (cancel func())
}

// PerController returns a Registerer for the metrics of transports that have the label controller.
// Pass it to Config.Registry, too: the engine then deletes the series of a controller that has
// stopped from these metrics as it does from its own.
func PerController(r prometheus.Registerer) prometheus.Registerer { return metrics.SeriesOf(r) }

// ErrStale reports a write that did not happen, because the object has changed since it was read.
// The engine tries again with the new object.
var ErrStale = act.ErrStale

// CheckControllers returns the faults of controllers in Go that are known without an API server.
func CheckControllers(scheme *runtime.Scheme, all ...controller.Declared) error {
	return host.Check(scheme, all...)
}

// Engine runs controllers.
type Engine struct {
	supervisor *supervisor.Supervisor
	group      *host.Group
	host       *host.Process
	budget     *budget.Budget
	begun      sync.Once
	end        context.CancelFunc
	tasks      sync.WaitGroup
	warmed     atomic.Bool
}

// New makes an Engine. It returns after the first answer of the API server, with an error of the
// configuration, or with ctx's error.
func New(ctx context.Context, c Config) (*Engine, error) {
	registry := metrics.SeriesOf(c.Registry)
	entries := metrics.NewCacheEntries(registry)
	for name, count := range c.Caches {
		entries.Add(name, count)
	}
	waits := share.NewWaits(c.SlowHookWaits, waitBytes(c.Budget))
	requests := metrics.NewShares(registry, waits)
	config := rest.CopyConfig(c.Rest)
	config.QPS = float32(c.ClientQPS)
	config.Burst = c.ClientBurst
	if c.ClientQPS > 0 { // one limit for the process, not one for each client
		config.RateLimiter = share.NewLimiter(c.ClientQPS, c.ClientBurst, clock.RealClock{}, requests.Waited)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of the API server: %w", err)
	}
	cluster, err := clusterUID(ctx, client)
	if err != nil {
		return nil, err
	}
	writer, err := act.NewWriter(act.Config{
		Config: config, Tracer: c.Tracer, Meter: metrics.NewWrites(registry), Clock: clock.RealClock{}, Fence: c.Fence,
		Strict: c.StrictFields,
	})
	if err != nil {
		return nil, err
	}
	metrics.NewPace(registry, writer.Pace)
	circuits := metrics.NewCircuits(registry)
	limits := circuit.Config{Limit: c.RewriteLimit, Pause: c.RewritePause}
	shared, err := host.New(ctx, host.Config{
		Config: config, Reads: unthrottled(config), Client: client, Component: component,
		EventsQPS: c.EventsQPS, EventsBurst: c.EventsBurst, EventsLogOnly: c.EventsLogOnly,
		StaleAfter: c.StaleAfter, DiscoveryInterval: c.DiscoveryInterval, Writer: writer,
		Host: host.Host{
			Tracer: c.Tracer, Clock: clock.RealClock{}, Scheme: c.Scheme, Workers: c.Workers, Waits: waits,
			GracePeriod: c.GracePeriod, QueueMetrics: metrics.NewQueues(registry), ClusterUID: cluster,
			Sampled: c.Sampled, Recorder: metrics.NewReconciles(registry, c.LastSyncs, time.Now), Registry: registry,
			Circuit: limits, Circuits: circuits, CountCache: entries.Add, Triggers: c.Triggers,
		},
	})
	if err != nil {
		return nil, err
	}
	metrics.NewCache(registry, shared.Cache.Stats, writer.Echoes.Stats)
	entries.Add("served-resources", shared.Discovery.Len)
	if c.Steps != nil {
		shared.Gate = c.Steps.gate
		c.Steps.observe(shared)
	}
	e := &Engine{host: shared, budget: c.Budget}
	e.group, err = host.NewGroup(shared.Host, c.Controllers...)
	if err != nil {
		shared.Close()
		return nil, err
	}
	if c.ControllersOnly {
		return e, nil
	}
	settings := supervisor.Config{
		Cache: shared.Cache, Discovery: shared.Discovery, Events: shared.Events,
		Openers: middleware.Openers(c.Openers, middleware.Config{
			Tracer: shared.Tracer, Metrics: middleware.NewMetrics(registry), Memory: c.Budget.Share(budget.Decoding),
		}),
		Writer: writer, Status: report.NewStatus(writer),
		Recorder: metrics.NewRecorder(metrics.NewSyncs(registry, circuits), c.LastSyncs, shared.Clock.Now),
		Observer: c.Observer, Gate: shared.Gate, Tracer: shared.Tracer, Clock: shared.Clock,
		Workers: c.Workers, Waits: waits,
		Apply:         plan.Apply{ServerSide: c.ServerSideApply, Manager: c.FieldManager},
		DeletionLimit: deletionLimit(c.DeletionLimit), Account: accounts(c.Budget), Circuit: limits,
		TargetSelector: c.TargetSelector, GracePeriod: c.GracePeriod, CustomizeMaxAge: c.CustomizeMaxAge,
		QueueMetrics: shared.QueueMetrics, Stopped: registry.Forget, Intercepts: metrics.NewIntercepts(registry),
		ClusterUID: cluster, Sampled: c.Sampled, Lookup: lookup(client), May: may(client),
	}
	if c.FinalizersIn != "" {
		settings.Finalizers = supervisor.NewFinalizerRecords(writer, c.FinalizersIn)
	}
	e.supervisor = supervisor.New(settings)
	entries.Add("related-rules", e.supervisor.RelatedRules)
	entries.Add("related-answers", e.supervisor.RelatedAnswers)
	return e, nil
}

func deletionLimit(text string) *plan.DeletionLimit {
	if text == "" {
		return nil
	}
	limit := plan.DeletionLimit(intstr.Parse(text))
	return &limit
}

// unthrottled returns the configuration without a limit of requests.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter = nil
	config.QPS = -1
	return config
}

// Ready reports whether the caches of all controllers are filled.
func (e *Engine) Ready() bool {
	return e.group.Ready() && (e.supervisor == nil || e.supervisor.Ready())
}

// Problems are the reasons why controllers in Go do not run.
func (e *Engine) Problems() []string { return e.group.Problems() }

// Warm keeps the caches filled until ctx ends, for a replica that waits to lead.
func (e *Engine) Warm(ctx context.Context) {
	e.warmed.Store(true)
	e.begin(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { e.group.Warm(ctx) })
	if e.supervisor != nil {
		wait.Go(func() { e.supervisor.Warm(ctx) })
	}
	wait.Wait()
}

// Warmed reports whether Warm has filled the caches.
func (e *Engine) Warmed() bool {
	return e.group.Warmed() && (e.supervisor == nil || e.supervisor.Warmed())
}

// Run runs the controllers until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	e.begin(ctx)
	if e.warmed.Load() {
		e.host.Cache.Revalidate()
		if err := e.host.Discovery.Refresh(ctx); err != nil {
			klog.FromContext(ctx).Error(err, "some resources are not known yet")
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() { e.group.Run(ctx) })
	defer wait.Wait()
	defer cancel()
	if e.supervisor == nil {
		<-ctx.Done()
		return nil
	}
	return e.supervisor.Run(ctx)
}

func (e *Engine) begin(ctx context.Context) {
	e.begun.Do(func() {
		ctx, e.end = context.WithCancel(context.WithoutCancel(ctx))
		e.tasks.Go(func() { e.host.Discovery.Run(ctx) })
		e.tasks.Go(func() { reportCaches(ctx, e.budget, e.host.Cache.Stats, clock.RealClock{}) })
	})
}

// Close ends the watches and the recording of Events, after Run and Warm have returned.
func (e *Engine) Close() {
	e.begun.Do(func() {}) // nothing begins any more
	if e.end != nil {
		e.end()
	}
	e.tasks.Wait()
	e.host.Close()
}

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
