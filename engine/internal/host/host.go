// Package host is what a process gives to the controllers that a Go program declares (packages
// controller and actor): the cache, the writer, discovery, Events, the tracer, limits and metrics.
//
// A Group runs declared controllers: it waits for kinds that are not served, starts a controller
// that has failed again, and reports why one does not run. Package server makes the Host of a
// process, package controllertest that of a test, so both run the same code. A Host and a Group are
// safe for concurrent use.
package host

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/expectations"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Resources are the resources that the API server serves (package discovery).
type Resources interface {
	// Kind returns the resource of a kind. The error is a *discovery.NotFoundError if the API
	// server does not serve it.
	Kind(schema.GroupVersionKind) (object.Resource, error)
	// Changed returns a channel that is closed at the next change of the served resources.
	Changed() <-chan struct{}
}

// Reconcile is the outcome of one reconcile.
type Reconcile struct {
	Controller string
	// Result is a name out of a bounded set. Failed reports a fault; a conflict is none.
	Result string
	Failed bool
	// Duration is the time of the reconcile, after it had waited in the queue for Waited.
	Duration, Waited time.Duration
	// Attempt counts consecutive failures before this one.
	Attempt int
	// Object and Generation are those of the reconciled object; Object is empty if it does not
	// exist.
	Object     types.UID
	Generation int64
	// Writes is the number of requests that have written.
	Writes int
	// Trace is the id of the trace if it is exported; otherwise it is not valid.
	Trace trace.TraceID
}

// Recorder observes every reconcile, for metrics. It must not block.
type Recorder interface {
	// Reconciled is called once for each reconcile.
	Reconciled(r Reconcile)
	// Bound is called after each reconcile with the number of bound references of all keys.
	Bound(controller string, references int)
	// MappersHung is called when the number of a controller's calls of mappers that do not return
	// has changed.
	MappersHung(controller string, calls int)
}

// Trigger is a request from outside of the cluster to reconcile objects.
type Trigger struct {
	// Match selects the objects; nil selects all.
	Match func(*object.Object) bool
	// LowPriority lets all other reconciles go first.
	LowPriority bool
	// Reason is a text for people.
	Reason string
}

// CircuitRecorder observes circuits, for metrics. It must not block.
type CircuitRecorder interface {
	// Opened is called when a circuit opens because a field of an object of a kind was rewritten.
	Opened(controller string, kind schema.GroupVersionKind, field string)
	// Open is called when the number of a controller's keys with an open circuit changes.
	Open(controller string, keys int)
}

// Host holds what the Go controllers of a process share: one cache, one writer, one clock. Pass it
// to each controller when you build it. Set every field unless its comment allows nil or zero;
// [New] sets defaults.
type Host struct {
	Cache     *cache.Cache
	Resources Resources
	Writer    *act.Writer
	Events    *report.Events
	Tracer    trace.Tracer
	Clock     clock.WithTicker
	// Scheme has the Go types of the controllers.
	Scheme *runtime.Scheme
	// Workers is the number of reconciles at the same time of a controller that declares none.
	Workers int
	// Waits has room for reconciles that wait for slow peers beside the workers; nil for none.
	Waits loop.WaitLimit
	// GracePeriod is the time that running reconciles have to finish at the end.
	GracePeriod time.Duration
	// Gate holds up the controllers' workers, for tests; nil for none.
	Gate loop.Gate
	// QueueMetrics and Recorder may be nil.
	QueueMetrics queue.MetricsProvider
	Recorder     Recorder
	// Triggers subscribes a controller to the requests of a gateway's worker, until cancel is
	// called; nil without a gateway.
	Triggers func(controller, worker string, f func(Trigger) (objects int, err error)) (cancel func())
	// Circuit limits the rewrites of a field; the zero value does not. Circuits may be nil.
	Circuit  circuit.Config
	Circuits CircuitRecorder
	// CountCache adds a cache of the process to the metric of caches, with a function that returns
	// the number of its entries; nil for none.
	CountCache func(cache string, entries func() int)
	// Registry takes further metrics of controllers; nil for none.
	Registry prometheus.Registerer
	// ClusterUID is the UID of the namespace kube-system; it may be empty.
	ClusterUID types.UID
	// Sampled reports whether the change with a trace id is traced.
	Sampled func(trace.TraceID) bool
}

// Config configures New. The zero value of a field is its default, except for Config.
type Config struct {
	// Config reaches the API server. Reads is Config for lists and watches; nil means Config.
	Config, Reads *rest.Config
	// Client is the client for discovery and Events; nil makes one of Config.
	Client kubernetes.Interface
	// Component is the source of Events.
	Component string
	// EventsQPS and EventsBurst limit the Events about one object.
	EventsQPS   float32
	EventsBurst int
	// EventsLogOnly reports that Events about objects of a kind are written to the log alone; it
	// may be nil.
	EventsLogOnly func(schema.GroupVersionKind) bool
	// StaleAfter is the time for which a list or a watch may fail before reads of the view fail.
	StaleAfter time.Duration
	// DiscoveryInterval is the longest time until a change of the served resources is noticed if no
	// watch shows it.
	DiscoveryInterval time.Duration
	// Writer writes; nil makes one of Config without a fence.
	Writer *act.Writer
	// Host has the other parts; New sets those that are missing.
	Host Host
}

// defaultDiscoveryInterval is the default of Config.DiscoveryInterval.
const defaultDiscoveryInterval = 30 * time.Second

// Process is a Host with the parts that must run and be closed.
type Process struct {
	*Host
	Discovery *discovery.Discovery
}

// New makes the parts of a process. It reads the API server's discovery documents; resources that
// cannot be read are logged, and read again by Discovery.Run. Close ends what New has started.
func New(ctx context.Context, s Config) (*Process, error) {
	if s.Config == nil {
		return nil, errors.New("host: Config is missing")
	}
	h := s.Host
	h.complete()
	if s.Reads == nil {
		s.Reads = s.Config
	}
	if s.DiscoveryInterval <= 0 {
		s.DiscoveryInterval = defaultDiscoveryInterval
	}
	var err error
	if s.Client == nil {
		s.Client, err = kubernetes.NewForConfig(s.Config)
		if err != nil {
			return nil, fmt.Errorf("client of the API server: %w", err)
		}
	}
	h.Writer = s.Writer
	if h.Writer == nil {
		h.Writer, err = act.NewWriter(act.Config{Config: s.Config, Tracer: h.Tracer, Meter: noMeter{}, Clock: h.Clock})
		if err != nil {
			return nil, err
		}
	}
	h.Cache, err = cache.New(cache.Config{
		Config: s.Reads, StaleAfter: s.StaleAfter, Decode: h.Writer.Echoes.Event,
	})
	if err != nil {
		return nil, err
	}
	served := discovery.New(discovery.Config{
		Client: s.Client.Discovery(), Cache: h.Cache, Clock: h.Clock, Interval: s.DiscoveryInterval,
	})
	if err := served.Refresh(ctx); err != nil {
		klog.FromContext(ctx).Error(err, "some resources are not known yet")
	}
	h.Resources = served
	h.Events = report.NewEvents(context.WithoutCancel(ctx), report.EventConfig{
		Client: s.Client.CoreV1(), Component: s.Component, QPS: s.EventsQPS, Burst: s.EventsBurst,
		LogOnly: s.EventsLogOnly,
	})
	return &Process{Host: &h, Discovery: served}, nil
}

// Close ends the watches and the recording of Events.
func (p *Process) Close() {
	p.Events.Stop()
	p.Cache.Close()
}

// Writes holds the process's writes for the reads of its controllers; nil holds none.
func (h *Host) Writes() *expectations.Ledger {
	if h.Writer == nil {
		return nil
	}
	return h.Writer.Writes
}

// complete sets the defaults of the parts that need no API server.
func (h *Host) complete() {
	if h.Tracer == nil {
		h.Tracer = noop.NewTracerProvider().Tracer("")
	}
	if h.Clock == nil {
		h.Clock = clock.RealClock{}
	}
	if h.Scheme == nil {
		h.Scheme = scheme.Scheme
	}
	if h.Sampled == nil {
		h.Sampled = func(trace.TraceID) bool { return false }
	}
	h.Workers = max(1, h.Workers)
}

// noMeter counts no writes.
type noMeter struct{}

// Wrote implements act.Meter.
func (noMeter) Wrote(string, string) {}
