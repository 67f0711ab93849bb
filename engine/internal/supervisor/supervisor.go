// Package supervisor runs one controller for each declaring object: it starts, restarts and stops
// controllers as the objects change, and reports the result in the objects' status.
//
// It is itself a controller of package loop. It knows the kinds of controller, but of
// transports only the map of openers. Its data comes from the cache (the declaring objects), from
// discovery (the served resources) and from the pipelines (whether hooks answer). A Supervisor is
// safe for concurrent use. It is tested against the real API server (test/integration).
package supervisor

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/act/circuit"
	"github.com/hookloop/hookloop/engine/internal/ask/customize"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/discovery"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Config configures a Supervisor. Every field is required unless its comment allows nil or zero.
type Config struct {
	Cache     *cache.Cache
	Discovery *discovery.Discovery
	Openers   hook.Openers
	// Version is the version of the program, for hooks; it may be empty.
	Version  string
	Writer   *act.Writer
	Status   *report.Status
	Events   *report.Events
	Recorder pipeline.Recorder
	// Observer may be nil.
	Observer Observer
	Tracer   trace.Tracer
	Clock    clock.WithTicker
	// Lookup reads Secrets and ConfigMaps that hooks refer to.
	Lookup hook.Lookup
	// May checks the engine's own rights, to name missing ones; nil names none.
	May MayFunc
	// Finalizers is the record of finalizers; nil keeps it for the life of the process.
	Finalizers *FinalizerRecords
	// Apply is the strategy for writing children.
	Apply plan.Apply
	// Account accounts for the memory that pipelines use for their parents; nil sets no limit.
	Account pipeline.OpenAccount
	// DeletionLimit is the default of spec.deletionLimit; nil for none.
	DeletionLimit *plan.DeletionLimit
	// Circuit bounds rewrites of one field; the zero value sets no bound.
	Circuit circuit.Config
	// Workers is the number of syncs at the same time for each controller.
	Workers int
	// Waits has room for syncs that wait for slow hooks beside the workers; nil for none.
	Waits *share.Waits
	// TargetSelector selects declaring objects by their labels; nil selects all.
	TargetSelector labels.Selector
	// CustomizeMaxAge is the longest time for which an answer of a customize hook is used.
	CustomizeMaxAge time.Duration
	// GracePeriod is the time that running syncs have to finish when a controller stops.
	GracePeriod time.Duration
	// QueueMetrics may be nil.
	QueueMetrics queue.MetricsProvider
	// Gate holds up the workers of all controllers; nil for none.
	Gate loop.Gate
	// Intercepts is called with the number of intercepts of a controller when it changes; may be
	// nil.
	Intercepts func(controller string, n int)
	// Stopped is called when a controller ("composite/hello") has stopped or could not be started,
	// with its declaring object; may be nil.
	Stopped    func(controller string, declared object.Ref)
	ClusterUID types.UID
	Sampled    func(trace.TraceID) bool
}

// Observer is notified of every sync of all controllers, and of the controllers' conditions. It
// must not block.
type Observer interface {
	pipeline.Observer
	// Reported is called when conditions of a controller ("composite/hello") have changed, with all
	// that were checked.
	Reported(controller string, conditions []hook.Condition)
}

// Supervisor starts a controller for each declaring object, restarts it when the declaration
// changes, and stops it when the object is gone. It is itself a controller, whose keys are the
// declaring objects. It reports the condition Ready of each. Call Run once; the other methods are
// safe for concurrent use.
type Supervisor struct {
	Config
	// log is the process's logger, without the values of the supervisor's own controller.
	log klog.Logger
	// enqueue enqueues a declaring object, reader reads the declaring objects; nil before Run.
	enqueue loop.Enqueue[object.Ref]
	// starts delays the starts of controllers that fail.
	starts *starts
	// missing records the controllers that wait for a resource.
	missing *missing
	reader  view.Reader
	// awaited holds the optional kinds that could not be watched at the start.
	awaited awaitedKinds

	// noSummary has the kinds with an installed CRD that lacks the fields of the summary.
	noSummary sync.Map

	// warm is nil before Warm.
	warm atomic.Pointer[warm]

	mu      sync.Mutex // guards the fields below
	running map[object.Ref]*instance
	// known are the parents of each controller; kept until its finalizer is removed from them.
	known map[object.Ref]*parents
	// pending are the declaring objects of the first list that have not been reconciled; nil before
	// that list is known.
	pending map[object.Ref]bool
}

// New returns a Supervisor; Run starts it.
func New(s Config) *Supervisor {
	if s.TargetSelector == nil {
		s.TargetSelector = labels.Everything()
	}
	return &Supervisor{
		Config: s, starts: newStarts(s.Clock), missing: newMissing(s.Clock),
		running: map[object.Ref]*instance{}, known: map[object.Ref]*parents{},
	}
}

// RelatedRules returns the number of rules about related objects and of the objects that they name,
// of all controllers.
func (s *Supervisor) RelatedRules() int { return s.countRelated((*customize.Customizer).Rules) }

// RelatedAnswers returns the number of answers with such rules that are kept.
func (s *Supervisor) RelatedAnswers() int { return s.countRelated((*customize.Customizer).Answers) }

func (s *Supervisor) countRelated(count func(*customize.Customizer) int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, i := range s.running {
		n += count(i.related)
	}
	return n
}

// Ready reports whether every declaring object of the first list has been reconciled: its
// controller runs with filled caches, or a condition gives the reason why not.
func (s *Supervisor) Ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending != nil && len(s.pending) == 0
}

// Run runs the controllers until ctx is done, then stops them and waits for running syncs. It
// waits for the CRDs of the declaring objects if they are not installed, except for those of
// optional kinds. The error is nil after an ordered stop.
func (s *Supervisor) Run(ctx context.Context) error {
	if !s.awaitCRDs(ctx) {
		return nil
	}
	s.log = klog.FromContext(ctx)
	defer func() { s.stopAll(context.Cause(ctx)) }()
	c := loop.New[object.Ref]("supervisor", loop.Config{
		Cache:       s.Cache,
		Clock:       s.Clock,
		Workers:     4,
		GracePeriod: s.GracePeriod,
		Metrics:     s.QueueMetrics,
		Gate:        s.Gate,
		MaxBackoff:  maxBackoff,
	})
	s.enqueue, s.reader = c.Enqueue, c.Reader()
	release := s.chooseKinds(ctx)
	defer release()
	for _, r := range kinds {
		if s.awaited.waits(r) {
			c.Source(s.awaitKind(r))
			continue
		}
		c.For(r, mapper.Ref)
	}
	c.Source(s.rediscovered)
	c.Source(s.recorded)
	c.Initialize(func(context.Context, loop.Runtime[object.Ref]) error { return s.first() })
	c.Reconcile(traced{s})
	return c.Run(ctx)
}

// maxBackoff is the longest backoff of a declaring object.
const maxBackoff = 30 * time.Second

// first records and enqueues the declaring objects at the start: an object that is deleted before
// the supervisor subscribes has no event.
func (s *Supervisor) first() error {
	pending := map[object.Ref]bool{}
	for _, r := range s.awaited.without(kinds) {
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

// nudge enqueues a declaring object for a reason that is not an event.
func (s *Supervisor) nudge(key object.Ref) {
	s.enqueue(key, queue.Child, queue.Cause{Kind: queue.CauseTrigger})
}

// rediscovered is a source: it enqueues all declaring objects at the start and whenever the served
// resources change, even during a listing. The error is a *view.Error if the objects are not known.
func (s *Supervisor) rediscovered(ctx context.Context, enqueue loop.Enqueue[object.Ref]) error {
	for {
		changed := s.Discovery.Changed()
		for _, r := range s.awaited.without(kinds) {
			v, err := s.view(r)
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
