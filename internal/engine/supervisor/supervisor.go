// Package supervisor keeps one running controller for each declared object: it starts what is
// declared, restarts what changed, stops what is gone, and says on the declaring object how that
// went.
//
// It is itself a controller of package engine/controller. It knows the kinds of controller, and
// nothing of transports beyond the map of openers. Its data comes from the cache (the declaring
// objects), from discovery (which resources exist) and from the pipelines (whether hooks answer). A
// Supervisor is safe for concurrent use. It is tested against the real API server
// (test/integration).
package supervisor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/mapper"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/circuit"
	"github.com/hookloop/hookloop/internal/engine/discovery"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"github.com/hookloop/hookloop/internal/engine/share"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Settings are what a Supervisor is made of. All fields are needed unless they say otherwise.
type Settings struct {
	Cache     *cache.Cache
	Discovery *discovery.Discovery
	Openers   hook.Openers
	Writer    *act.Writer
	Status    *report.Status
	Events    *report.Events
	Recorder  pipeline.Recorder
	Tracer    trace.Tracer
	Clock     clock.WithTicker
	// Lookup reads Secrets and ConfigMaps that hooks refer to.
	Lookup hook.Lookup
	// May asks what the engine itself is allowed to do, to name missing rights. It may be nil.
	May MayFunc
	// Finalizers is the record of finalizers; nil keeps it for the life of the process.
	Finalizers *FinalizerRecords
	// Apply says how children are written.
	Apply plan.Apply
	// Account keeps account of the memory that pipelines use for their parents; nil for no limit.
	Account pipeline.OpenAccount
	// DeletionLimit is that of controllers that have none in their spec; nil for none.
	DeletionLimit *plan.DeletionLimit
	// Circuit bounds rewrites of one field; the zero value does not.
	Circuit circuit.Settings
	// Workers is the number of syncs under way at once for each controller.
	Workers int
	// Waits has room for syncs that wait for slow hooks beside the workers; nil for none.
	Waits *share.Waits
	// TargetSelector narrows the declaring objects by their own labels; nil takes all.
	TargetSelector labels.Selector
	// CustomizeMaxAge is how long an answer of a customize hook counts at most.
	CustomizeMaxAge time.Duration
	// GracePeriod is how long syncs under way may take to finish when a controller stops.
	GracePeriod time.Duration
	// QueueMetrics may be nil.
	QueueMetrics queue.MetricsProvider
	// Intercepts hears how many intercepts a controller has; nil hears nothing.
	Intercepts func(controller string, n int)
	// Stopped hears that a controller ("composite/hello") has stopped, or could not be started,
	// with its declaring object; nil hears nothing.
	Stopped    func(controller string, declared object.Ref)
	ClusterUID types.UID
	Sampled    func(trace.TraceID) bool
}

// Supervisor runs the declared controllers.
type Supervisor struct {
	Settings
	// log is the process's logger, without what the supervisor's own controller adds to it.
	log klog.Logger
	// enqueue has a declaring object looked at again, reader reads the declaring objects; nil
	// before Run.
	enqueue controller.Enqueue[object.Ref]
	// starts holds back controllers that do not come up.
	starts *starts
	// missing notes which controllers wait for a resource.
	missing *missing
	reader  view.Reader

	// noSummary reports that the CRDs do not have the fields of the summary.
	noSummary atomic.Bool

	mu      sync.Mutex // guards the fields below
	running map[object.Ref]*instance
	// known is which parents each controller has had; kept until they have been let go.
	known map[object.Ref]*parents
	// pending are the declaring objects of the first list that have not been looked at; nil before
	// that list is known.
	pending map[object.Ref]bool
}

// New makes a Supervisor; Run starts it.
func New(s Settings) *Supervisor {
	if s.TargetSelector == nil {
		s.TargetSelector = labels.Everything()
	}
	return &Supervisor{
		Settings: s, starts: newStarts(s.Clock), missing: newMissing(s.Clock),
		running: map[object.Ref]*instance{}, known: map[object.Ref]*parents{},
	}
}

// Ready reports whether every declaring object of the first list has been looked at: its controller
// runs with its caches filled, or it has a condition that says why not.
func (s *Supervisor) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending != nil && len(s.pending) == 0
}

// Run keeps controllers running until ctx is done, then stops them and waits for syncs under way.
// It waits for its own CRDs where they are not installed yet. The error is nil after an ordered
// stop.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.awaitCRDs(ctx) {
		return nil
	}
	s.log = klog.FromContext(ctx)
	defer func() { s.stopAll(context.Cause(ctx)) }()
	c := controller.New[object.Ref]("supervisor", controller.Settings{
		Cache:       s.Cache,
		Clock:       s.Clock,
		Workers:     4,
		GracePeriod: s.GracePeriod,
		Metrics:     s.QueueMetrics,
		MaxBackoff:  maxLookWait,
	})
	s.enqueue, s.reader = c.Enqueue, c.Reader()
	for _, r := range kinds {
		c.For(r, mapper.Ref)
	}
	c.Source(s.rediscovered)
	c.Source(s.recorded)
	c.Initialize(func(context.Context, controller.Runtime[object.Ref]) error { return s.first() })
	c.Reconcile(traced{s})
	return c.Run(ctx)
}

// maxLookWait is the longest backoff of a declaring object that could not be looked at.
const maxLookWait = 30 * time.Second

// kinds are the declaring resources.
var kinds = declaringResources()

func declaringResources() []object.Resource {
	var all []object.Resource
	for _, k := range hook.Descriptors() {
		all = append(all, object.Resource{
			GVK: v1alpha1.GroupVersion.WithKind(k.Declared), Plural: k.Plural, HasStatus: true,
		})
	}
	return all
}

// awaitCRDs waits until the API server serves the declaring resources; false if ctx has ended
// before.
func (s *Supervisor) awaitCRDs(ctx context.Context) bool {
	for {
		changed := s.Discovery.Changed()
		missing := slices.IndexFunc(kinds, func(r object.Resource) bool {
			_, err := s.Discovery.Resource(r.GVK.GroupVersion().String(), r.Plural)
			return err != nil
		})
		if missing < 0 {
			return true
		}
		klog.FromContext(ctx).Info("waiting for a CustomResourceDefinition to be installed", "resource",
			kinds[missing].String())
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// first notes which declaring objects there are when the supervisor starts, and has each of them
// looked at: one that is deleted before the supervisor subscribes has no event.
func (s *Supervisor) first() error {
	pending := map[object.Ref]bool{}
	for _, r := range kinds {
		v, err := s.reader.View(r)
		if err != nil {
			return err
		}
		for o := range v.List("").All() {
			pending[o.Ref()] = true
		}
	}
	keys := slices.Collect(maps.Keys(pending))
	s.mu.Lock()
	s.pending = pending
	s.mu.Unlock()
	for _, key := range keys {
		s.enqueue(key, queue.Resync, queue.Cause{Kind: queue.CauseInitial})
	}
	return nil
}

// nudge has a declaring object looked at again for a reason that is no event.
func (s *Supervisor) nudge(key object.Ref) {
	s.enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseTrigger})
}

// rediscovered is a source: all declaring objects, at the beginning and whenever the API server
// serves other resources than before. What changes while they are listed brings them once more. The
// error is a *view.Error if they are not known.
func (s *Supervisor) rediscovered(ctx context.Context, enqueue controller.Enqueue[object.Ref]) error {
	for {
		changed := s.Discovery.Changed()
		for _, r := range kinds {
			v, err := s.reader.View(r)
			if err != nil {
				return err
			}
			for o := range v.List("").All() {
				enqueue(o.Ref(), queue.Child, queue.Cause{Kind: queue.CauseTrigger})
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}
