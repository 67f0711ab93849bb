// Package loop is the reconcile loop of all controllers: primary types, secondary types with
// mappers, sources of events that are not Kubernetes objects, an initializer, a queue and workers.
//
// The type of the keys is a parameter: object.Ref for a controller with objects as keys, any
// comparable type for others. A key is reconciled only when the views show what its last reconcile
// wrote, so that a reconciler reads its own writes.
//
// A Loop is declared by one goroutine and then run once. Several workers call the Reconciler at the
// same time, but never for the same key. Events come from package cache. Package controller is the
// typed form of a Loop for Go programs. The tests use a real cache.
package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hookloop/hookloop/engine/internal/loop/mapper"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/loop/share"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ErrStopNow is the cause to cancel Run's context with if running reconciles must be cancelled
// immediately, without the grace period.
var ErrStopNow = errors.New("work under way is abandoned")

// Config configures a Loop.
type Config struct {
	Cache *cache.Cache
	Clock clock.WithTicker
	// Workers is the largest number of reconciles at the same time; default 1. A reconcile that
	// waits long for a peer (see Wait) does not count as long as Waits has room for it, and one
	// that only writes (see OnlyWrites) does not either.
	Workers int
	// Waits bounds the reconciles that wait beside the workers; nil allows none.
	Waits WaitLimit
	// GracePeriod is the time that running reconciles have to finish after the controller is
	// stopped; then their context is cancelled.
	GracePeriod time.Duration
	// ResyncPeriod is the time between two resyncs, which enqueue every object of the primary types
	// at the lowest priority; 0 for never.
	ResyncPeriod time.Duration
	// MapInitial also enqueues the keys to which mappers map the objects that are present at the
	// start, with the priority of a resync. This finds keys without an object of a primary type.
	MapInitial bool
	// MaxBackoff is the longest wait after failures; 0 for queue.MaxBackoff.
	MaxBackoff time.Duration
	// Metrics makes the queue's metrics; nil for none.
	Metrics queue.MetricsProvider
	// Gate holds up the workers, for tests; nil for none.
	Gate Gate
	// MetricsName is the queue's name in the metrics; empty for the controller's name.
	MetricsName string
}

// WaitLimit bounds reconciles that wait for peers, across controllers. It is safe for concurrent
// use.
type WaitLimit interface {
	// Take reserves room for one wait that holds size bytes. It reports whether there is room.
	Take(size int64) bool
	// Give returns what Take reserved.
	Give(size int64)
}

// Reconciler brings one key to its desired state.
type Reconciler[K comparable] interface {
	// Reconcile returns when the key is to be reconciled again. After an error the key comes again
	// after its backoff.
	Reconcile(ctx context.Context, item queue.Item[K]) (Result, error)
}

// Func is a Reconciler that is a function.
type Func[K comparable] func(ctx context.Context, item queue.Item[K]) (Result, error)

// Reconcile implements Reconciler.
func (f Func[K]) Reconcile(ctx context.Context, item queue.Item[K]) (Result, error) {
	return f(ctx, item)
}

// Result controls when a key is reconciled again without an event. The zero value waits for an
// event.
type Result struct {
	// RequeueAfter is the time until the next reconcile; 0 for none.
	RequeueAfter time.Duration
	// Priority is the priority of that reconcile in the queue.
	Priority queue.Priority
	// Skipped reports that the reconcile did nothing; the current backoff continues.
	Skipped bool
}

// Enqueue adds a key to the queue.
type Enqueue[K comparable] func(key K, p queue.Priority, c queue.Cause)

// Source is a custom watch: it enqueues keys until ctx is done. If it returns an error, it is
// started again after a second.
type Source[K comparable] func(ctx context.Context, enqueue Enqueue[K]) error

// Predicate reports whether an event of a primary type is handled.
type Predicate func(cache.Event) bool

// Runtime is the view of a Loop that an initializer gets.
type Runtime[K comparable] interface {
	Reader() view.Reader
	Enqueue(key K, p queue.Priority, c queue.Cause)
}

// Loop watches resources, puts the keys that they concern into a queue, and calls a reconciler for
// each key. Declare what to watch and how to reconcile, then call Run. Declarations must not change
// after that. A Loop never gives the same key to two workers.
type Loop[K comparable] struct {
	name       string
	config     Config
	queue      *queue.Queue[K]
	primary    []primary[K]
	secondary  []secondary[K]
	indexes    []index
	sources    []Source[K]
	initialize func(context.Context, Runtime[K]) error
	reconciler Reconciler[K]
	slots      *slots
	views      views[K]
	expected   expected[K]
}

// primary is a type with a key for each object.
type primary[K comparable] struct {
	resource   object.Resource
	key        mapper.KeyFunc[K]
	predicates []Predicate
}

// secondary is a further watched type.
type secondary[K comparable] struct {
	resource object.Resource
	mappers  []mapper.Func[K]
}

// index is a secondary index of a declared type.
type index struct {
	resource object.Resource
	index    *view.Index
}

// New returns a controller that is not declared completely: For and Reconcile must follow. The name
// appears in logs and profiles, such as "composite/hello".
func New[K comparable](name string, s Config) *Loop[K] {
	s.Workers = max(1, s.Workers)
	if s.MetricsName == "" {
		s.MetricsName = name
	}
	return &Loop[K]{
		name: name, config: s,
		queue: queue.New[K](queue.Config{
			Name: s.MetricsName, Clock: s.Clock, Metrics: s.Metrics, MaxBackoff: s.MaxBackoff, Ordered: s.Gate != nil,
		}),
	}
}

// For declares a primary type. Its events enqueue the key of the object itself if every predicate
// accepts them. For may be called for several types.
func (c *Loop[K]) For(r object.Resource, key mapper.KeyFunc[K], predicates ...Predicate) {
	c.primary = append(c.primary, primary[K]{r, key, predicates})
}

// Watch declares a secondary type. Its events enqueue the keys that the mappers return.
func (c *Loop[K]) Watch(r object.Resource, mappers ...mapper.Func[K]) {
	c.secondary = append(c.secondary, secondary[K]{r, mappers})
}

// Index declares an index of a type that For or Watch declares. While the controller runs,
// View.By of Reader's views finds the objects of a value without a scan.
func (c *Loop[K]) Index(r object.Resource, i *view.Index) {
	c.indexes = append(c.indexes, index{r, i})
}

// Source declares a custom watch.
func (c *Loop[K]) Source(s Source[K]) { c.sources = append(c.sources, s) }

// Initialize declares a function that runs once, after the caches are filled and before the first
// reconcile. Its error ends Run.
func (c *Loop[K]) Initialize(f func(context.Context, Runtime[K]) error) { c.initialize = f }

// Reconcile declares the reconciler.
func (c *Loop[K]) Reconcile(r Reconciler[K]) { c.reconciler = r }

// Enqueue adds a key to the queue. A cause without a time gets the current one.
func (c *Loop[K]) Enqueue(key K, p queue.Priority, cause queue.Cause) {
	if cause.At.IsZero() {
		cause.At = c.config.Clock.Now()
	}
	c.queue.Add(key, p, cause)
}

// EnqueueAfter adds a key to the queue after a time.
func (c *Loop[K]) EnqueueAfter(key K, after time.Duration, p queue.Priority, kind queue.CauseKind) {
	c.queue.AddAfter(key, after, p, queue.Cause{Kind: kind, At: c.config.Clock.Now().Add(after)})
}

// Run fills the caches, then reconciles until ctx is done; then it takes no further key, waits for
// running reconciles and releases the caches. It fails immediately with a *cache.UnwatchableError
// if a resource cannot be watched, and with the initializer's error.
func (c *Loop[K]) Run(ctx context.Context) error {
	if c.reconciler == nil || len(c.primary) == 0 {
		return errors.New("controller " + c.name + ": For and Reconcile must be declared")
	}
	ctx = share.WithFlow(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("controller", c.name)), c.name)
	handles, err := c.acquire(ctx)
	defer handles.Release()
	if err != nil {
		return fmt.Errorf("controller %s: %w", c.name, err)
	}
	defer c.hold(handles)()
	if c.initialize != nil {
		if err := c.initialize(ctx, c); err != nil {
			return fmt.Errorf("controller %s: initializer: %w", c.name, err)
		}
	}
	for _, cancel := range c.subscribe(ctx, handles) {
		defer cancel()
	}
	if c.config.Gate != nil {
		defer c.config.Gate.Begin(c.name, c)()
	}
	c.work(ctx)
	return nil
}

// Resources returns the declared resources, each once.
func (c *Loop[K]) Resources() []object.Resource {
	var all []object.Resource
	add := func(r object.Resource) {
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	for _, p := range c.primary {
		add(p.resource)
	}
	for _, s := range c.secondary {
		add(s.resource)
	}
	return all
}

// acquire starts to watch every declared resource, each once, and returns when all are filled and
// indexed.
func (c *Loop[K]) acquire(ctx context.Context) (cache.Held, error) {
	handles := cache.Held{}
	for _, r := range c.Resources() {
		h, err := c.config.Cache.Acquire(ctx, r)
		if err != nil {
			return handles, err
		}
		handles[r] = h
	}
	for _, i := range c.indexes {
		h := handles[i.resource]
		if h == nil {
			return handles, fmt.Errorf("index %s: %s is not declared by For or Watch", i.index.Name(), i.resource)
		}
		h.Index(i.index)
	}
	return handles, nil
}
