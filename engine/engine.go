// Package engine runs controllers: the declared ones, which ask hooks what their objects should be,
// and controllers in Go (packages controller and actor).
//
//	e, err := engine.New(ctx, engine.Config{Rest: restConfig, Controllers: declared, ControllersOnly: true})
//	if err != nil {
//		return err
//	}
//	defer e.Close()
//	return e.Run(ctx)
//
// Most programs should use package server instead: it adds logs, flags, probes, leader election,
// traces and the transports. Use this package to run controllers in a process that already has its
// own. To run one sync without a cluster, use package dryrun.
//
// The engine knows hooks only by the port (package hook). To let it ask hooks over a transport, set
// [Config.Openers] to the transport's opener.
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
	"go.opentelemetry.io/otel/trace/noop"
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

// The defaults of the fields of [Config] with the same names.
const (
	DefaultStaleAfter      = cache.DefaultStaleAfter
	DefaultCustomizeMaxAge = customize.DefaultMaxAge
)

const (
	component     = "hookloop"
	retryInterval = 2 * time.Second
)

// ErrStopNow makes [Engine.Run] stop without a grace period: cancel its context with this cause when
// running syncs must not finish, for example because another replica may already be leading.
var ErrStopNow = loop.ErrStopNow

// RestartAnnotation is an annotation of a declared controller. The engine restarts the controller
// and syncs all of its parents when the value changes.
const RestartAnnotation = supervisor.RestartAnnotation

// Fence stops the writes of a replica that no longer leads. Pass it to [Config.Fence], open it with
// Grant after each renewal of the lease, and close it with Revoke. A nil Fence is always open.
type Fence = act.Fence

// ErrFenced is the error of a write that a closed [Fence] refused or cancelled. The object is
// unchanged, or the API server had applied the write when the fence closed.
var ErrFenced = act.ErrFenced

// NewFence returns a [Fence] that is closed.
func NewFence() *Fence { return act.NewFence() }

// Trigger asks a controller in Go to reconcile some of its objects. It comes from outside of the
// cluster, by [Config.Triggers].
type Trigger = host.Trigger

// Config configures an [Engine]. Rest is required. Every other field may be left at its zero value,
// which the comment of the field explains.
type Config struct {
	// Rest is the client configuration for the API server. New copies it and replaces the limits of
	// requests by ClientQPS and ClientBurst.
	Rest *rest.Config
	// ClientQPS limits the requests per second to the API server, for all controllers together. Lists
	// and watches are not limited. 0 sets no limit.
	ClientQPS float64
	// ClientBurst is the number of requests that may exceed ClientQPS at once. It should be greater
	// than 0 if ClientQPS is.
	ClientBurst int

	// Openers opens hooks, by the field of the hook's spec that names the transport. The engine adds
	// spans, metrics and the recovery from panics to each hook. Without Openers the engine can run
	// controllers in Go only.
	Openers hook.Openers
	// Version is the version of the program, which the transports of Openers tell hooks. It may be
	// empty.
	Version string
	// Controllers are the controllers in Go.
	Controllers []controller.Declared
	// ControllersOnly runs Controllers and no declared controllers. The CRDs of declared controllers
	// need not be installed then.
	ControllersOnly bool
	// Scheme has the Go types that Controllers use. nil uses the scheme of client-go, which has the
	// types of Kubernetes.
	Scheme *runtime.Scheme

	// Workers is the number of objects that one controller works on at the same time. 0 means 5.
	Workers int
	// SlowHookWaits is the number of syncs, of all controllers, that may wait for a slow hook without
	// keeping a worker busy. 0 lets none.
	SlowHookWaits int
	// DeletionLimit is the largest number of children that one answer may delete, as a number ("10")
	// or as a percentage of the parent's children ("50%"). A controller's spec.deletionLimit takes
	// precedence. Empty sets no limit.
	DeletionLimit string
	// RewriteLimit is the number of times that one field may be rewritten within a minute without a
	// change by a user. After that, nothing is written for this parent for the time of RewritePause.
	// 0 sets no limit.
	RewriteLimit int
	// RewritePause must be greater than 0 if RewriteLimit is.
	RewritePause time.Duration
	// TargetSelector selects the declared controllers to run, by their labels. nil runs all of them.
	TargetSelector labels.Selector
	// ServerSideApply writes children by server-side apply, and not by dynamic apply.
	ServerSideApply bool
	// FieldManager is the field manager for server-side apply. Empty means "metacontroller".
	FieldManager string
	// StrictFields makes the API server reject children that have unknown or duplicate fields. By
	// default, it drops these fields and warns.
	StrictFields bool

	// DiscoveryInterval is the longest time until the engine notices that the API server serves other
	// resources, if no watch shows it. 0 means 30 seconds.
	DiscoveryInterval time.Duration
	// StaleAfter is how long the list or watch of a resource may fail before objects that need the
	// resource are no longer synced. 0 means [DefaultStaleAfter].
	StaleAfter time.Duration
	// CustomizeMaxAge is how long the answer of a customize hook is used before the hook is asked
	// again. 0 means [DefaultCustomizeMaxAge].
	CustomizeMaxAge time.Duration
	// EventsQPS and EventsBurst limit the Events about one object: EventsQPS a second, after the first
	// EventsBurst. 0 means the defaults of client-go, one Event in 5 minutes after the first 25.
	EventsQPS   float32
	EventsBurst int
	// EventsLogOnly reports whether Events about a kind are only logged. nil sends all Events.
	EventsLogOnly func(schema.GroupVersionKind) bool
	// GracePeriod is how long running syncs may continue after the context of Run has ended. 0 cancels
	// them at once.
	GracePeriod time.Duration
	// FinalizersIn is the namespace for the records of finalizers. With these records the engine
	// removes its finalizers even after a controller was deleted while no engine ran. Empty keeps no
	// records.
	FinalizersIn string

	// Tracer makes the spans. nil makes none.
	Tracer trace.Tracer
	// Sampled reports whether the change with a trace ID is traced. It must give the same answer in
	// all replicas. nil means no change is.
	Sampled func(trace.TraceID) bool
	// Registry takes the metrics. A Registry can be used for one Engine only, because the names are
	// always the same. nil discards the metrics. See also [PerController].
	Registry prometheus.Registerer
	// Caches are further caches to count in hookloop_cache_entries, by the name of the cache. The
	// functions return the number of entries. They are called at each scrape and must be safe for
	// concurrent use.
	Caches map[string]func() int
	// Budget limits the memory of caches and of plans. It is for package server; nil sets no limit.
	Budget *budget.Budget
	// LastSyncs keeps the last sync of each object, for "hookloop explain". It is for package server;
	// nil keeps none.
	LastSyncs *lastsync.Store
	// Fence stops writes when this replica no longer leads. nil allows all writes.
	Fence *Fence
	// Observer is called after each sync. It may be nil.
	Observer Observer
	// Steps lets the caller decide when a controller takes its next key. nil lets controllers run
	// freely.
	Steps *Steps
	// Triggers subscribes a controller in Go to the triggers that are sent to a worker. f returns the
	// number of objects that a trigger selects. nil means that no triggers arrive.
	Triggers func(controller, worker string, f func(Trigger) (int, error)) (cancel func())
}

const (
	defaultWorkers      = 5
	defaultFieldManager = "metacontroller"
)

// complete sets the defaults of fields that the parts of the engine need.
func (c *Config) complete() {
	if c.Workers == 0 {
		c.Workers = defaultWorkers
	}
	if c.FieldManager == "" {
		c.FieldManager = defaultFieldManager
	}
	if c.Tracer == nil {
		c.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if c.Sampled == nil {
		c.Sampled = func(trace.TraceID) bool { return false }
	}
	if c.Registry == nil {
		c.Registry = prometheus.NewRegistry()
	}
	if c.LastSyncs == nil {
		c.LastSyncs = lastsync.New(lastsync.MaxParents)
	}
}

// PerController returns a Registerer for the metrics of transports that have the label controller.
// Pass it to Config.Registry, too: the engine then deletes the series of a controller that has
// stopped from these metrics as it does from its own.
func PerController(r prometheus.Registerer) prometheus.Registerer { return metrics.SeriesOf(r) }

// CheckControllers returns all faults in the declarations of controllers in Go that can be found
// without an API server, such as a type that the scheme does not have. A nil scheme is that of
// client-go.
func CheckControllers(scheme *runtime.Scheme, all ...controller.Declared) error {
	return host.Check(scheme, all...)
}

// Engine runs controllers. Use [New] to make one, [Engine.Run] to run it and [Engine.Close] to free
// its watches. All methods are safe for concurrent use.
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

// New makes an [Engine] that does not run yet. It waits until the API server answers. The error
// describes a fault in the configuration, or is that of ctx. The logger of ctx
// (klog.FromContext) is used for the life of the Engine.
func New(ctx context.Context, c Config) (*Engine, error) {
	c.complete()
	registry := metrics.SeriesOf(c.Registry)
	entries := metrics.NewCacheEntries(registry)
	for name, count := range c.Caches {
		entries.Add(name, count)
	}
	waits := share.NewWaits(c.SlowHookWaits, waitBytes(c.Budget))
	requests := metrics.NewShares(registry, waits)
	config := limited(&c, requests.Waited)
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
		Version: c.Version,
		Writer:  writer, Status: report.NewStatus(writer),
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

// limited returns the client configuration with one limit of requests for the whole process, because
// client-go would give each client a limit of its own. It calls waited after each wait.
func limited(c *Config, waited share.Observer) *rest.Config {
	if c.ClientQPS <= 0 {
		return unthrottled(c.Rest) // client-go takes 0 as its default of 5 requests per second
	}
	config := rest.CopyConfig(c.Rest)
	config.QPS = float32(c.ClientQPS)
	config.Burst = c.ClientBurst
	config.RateLimiter = share.NewLimiter(c.ClientQPS, c.ClientBurst, clock.RealClock{}, waited)
	return config
}

// unthrottled returns the configuration without a limit of requests.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.RateLimiter = nil
	config.QPS = -1
	return config
}

// Ready reports whether the caches of all controllers are filled, so that syncs can run. Use it for
// a readiness probe.
func (e *Engine) Ready() bool {
	return e.group.Ready() && (e.supervisor == nil || e.supervisor.Ready())
}

// Problems returns why some controllers in Go do not run, one line each. A restart does not solve
// these problems, so they should not make a process unready.
func (e *Engine) Problems() []string { return e.group.Problems() }

// Warm fills the caches and keeps them filled until ctx ends. Call it in a replica that waits to
// lead. Run may be called while Warm runs; ctx should end when the engine is Ready.
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

// Run runs the controllers until ctx ends, lets running syncs finish within the grace period, and
// returns nil. It must be called at most once. An error means that the engine could not go on.
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

// Close stops the watches and the recording of Events. It must be called after Run and Warm have
// returned; the Engine cannot be used again.
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
