// Package controller is the runtime library: a watched type, further types with mappers, sources
// that are no Kubernetes objects, an initializer, a queue and workers (the shape of Consul's
// controllers). Everything in the engine that reconciles is built with it, and a Go program can
// build a controller of its own with it.
//
// A key is reconciled only when the views show what its last reconcile has written through package
// act: a reconciler reads its own writes.
//
// It knows no hook and no kind of controller. Its data comes from the cache's events and from
// sources. A Controller is declared by one goroutine and then run once; a Reconciler is called by
// several workers at once, but never for one key at a time by two. It is tested against a real
// cache.
package controller

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/mapper"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/share"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// ErrStopNow is the cause of a context whose end leaves no grace: reconciles under way are
// cancelled at once.
var ErrStopNow = errors.New("work under way is abandoned")

// Settings configure a Controller.
type Settings struct {
	Cache *cache.Cache
	Clock clock.WithTicker
	// Workers is how many reconciles may be under way at once; default 1. Those that wait for a
	// peer for long (Wait) do not count as long as Waits, which may be nil, has room for them.
	Workers int
	Waits   *share.Waits
	// GracePeriod is how long reconciles under way may take to finish after the controller was told
	// to stop; then their context is cancelled.
	GracePeriod time.Duration
	// ResyncPeriod enqueues every object of the watched type that often, at the lowest priority; 0
	// for never.
	ResyncPeriod time.Duration
	// MaxBackoff is the longest wait of a key that failed; 0 stands for the queue's own.
	MaxBackoff time.Duration
	// Metrics may be nil. MetricsName is the queue's name in them; default is the controller's.
	Metrics     queue.MetricsProvider
	MetricsName string
}

// Reconciler brings one key to its desired state.
type Reconciler interface {
	// Reconcile returns when the key is to come again. An error brings it again after its backoff.
	Reconcile(ctx context.Context, item queue.Item) (Result, error)
}

// Result says when a key is to come again without an event.
type Result struct {
	// RequeueAfter is the time until then; 0 for never.
	RequeueAfter time.Duration
	Priority     queue.Priority
	// Skipped says that nothing was tried: a row of failures and the wait for its next try go on.
	Skipped bool
}

// Enqueue brings a key to the queue.
type Enqueue func(key object.Key, p queue.Priority, c queue.Cause)

// Source is a custom watch: it enqueues keys until ctx is done. An error has it started again after
// a second.
type Source func(ctx context.Context, enqueue Enqueue) error

// Filter says whether an event of the watched type counts.
type Filter func(cache.Event) bool

// Runtime is what an initializer sees.
type Runtime interface {
	Reader() view.Reader
	Enqueue(key object.Key, p queue.Priority, c queue.Cause)
}

// Controller is a declared controller.
type Controller struct {
	name       string
	settings   Settings
	queue      *queue.Queue
	watched    []watched
	watches    []watch
	sources    []Source
	initialize func(context.Context, Runtime) error
	reconciler Reconciler
	slots      *slots
	views      views
	expected   expected
}

// watched is a type whose objects are the keys. An event counts where all filters say so.
type watched struct {
	resource object.Resource
	filters  []Filter
}

// watch is a further type under watch.
type watch struct {
	resource object.Resource
	mappers  []mapper.Func
}

// New declares a controller. The name appears in logs and profiles: "composite/hello".
func New(name string, s Settings) *Controller {
	s.Workers = max(1, s.Workers)
	if s.MetricsName == "" {
		s.MetricsName = name
	}
	return &Controller{
		name: name, settings: s,
		queue: queue.New(queue.Settings{Name: s.MetricsName, Clock: s.Clock, Metrics: s.Metrics, MaxBackoff: s.MaxBackoff}),
	}
}

// For declares a watched type: its objects are the keys. An event counts where all filters say so.
// It may be called for several types.
func (c *Controller) For(r object.Resource, filters ...Filter) {
	c.watched = append(c.watched, watched{r, filters})
}

// Watch declares a further type, whose events the mappers turn into keys.
func (c *Controller) Watch(r object.Resource, mappers ...mapper.Func) {
	c.watches = append(c.watches, watch{r, mappers})
}

// Source declares a custom watch.
func (c *Controller) Source(s Source) { c.sources = append(c.sources, s) }

// Initialize declares what is done once, after the caches are filled and before the first
// reconcile. Its error ends Run.
func (c *Controller) Initialize(f func(context.Context, Runtime) error) { c.initialize = f }

// Reconcile declares the reconciler.
func (c *Controller) Reconcile(r Reconciler) { c.reconciler = r }

// Enqueue brings a key to the queue.
func (c *Controller) Enqueue(key object.Key, p queue.Priority, cause queue.Cause) {
	if cause.At.IsZero() {
		cause.At = c.settings.Clock.Now()
	}
	c.queue.Add(key, p, cause)
}

// Run fills the caches, then reconciles until ctx is done; then it takes no new key, waits for
// reconciles under way and gives the caches back. It fails at once where a resource cannot be
// watched (a *cache.UnwatchableError), and with the initializer's error.
func (c *Controller) Run(ctx context.Context) error {
	if c.reconciler == nil || len(c.watched) == 0 {
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
	c.work(ctx)
	return nil
}

// acquire has every declared resource watched, each once.
func (c *Controller) acquire(ctx context.Context) (cache.Held, error) {
	handles := cache.Held{}
	var resources []object.Resource
	for _, w := range c.watched {
		resources = append(resources, w.resource)
	}
	for _, w := range c.watches {
		resources = append(resources, w.resource)
	}
	for _, r := range resources {
		if handles[r] != nil {
			continue
		}
		h, err := c.settings.Cache.Acquire(ctx, r)
		if err != nil {
			return handles, err
		}
		handles[r] = h
	}
	return handles, nil
}

// subscribe connects the caches' events to the queue. Further watches come first, because their
// mappers may keep indexes of the watched type.
func (c *Controller) subscribe(ctx context.Context, handles cache.Held) []func() {
	var cancels []func()
	for _, w := range c.watches {
		cancels = append(cancels, handles[w.resource].Subscribe(func(e cache.Event) { c.mapped(ctx, w, e) }))
	}
	for _, w := range c.watched {
		cancels = append(cancels, handles[w.resource].Subscribe(func(e cache.Event) { c.own(ctx, w, e) }))
	}
	return cancels
}

// own handles an event of the watched type.
func (c *Controller) own(ctx context.Context, w watched, e cache.Event) {
	defer c.guard(ctx)
	if !w.counts(e) {
		return
	}
	kind, priority := queue.CauseObject, queue.User
	if e.Initial {
		kind, priority = queue.CauseInitial, queue.Resync
	}
	o := subject(e)
	c.queue.Add(object.Key{Parent: o.Ref()}, priority, c.cause(kind, o))
}

func (w watched) counts(e cache.Event) bool {
	for _, f := range w.filters {
		if !f(e) {
			return false
		}
	}
	return true
}

// isWatched says whether objects of a kind are keys by themselves.
func (c *Controller) isWatched(gvk schema.GroupVersionKind) bool {
	return slices.ContainsFunc(c.watched, func(w watched) bool { return w.resource.GVK == gvk })
}

// mapped handles an event of a further type. Objects that were there before the controller cause
// nothing: the watched type's first list brings all keys. Where a further type's own keys differ
// from that, its objects are what the first list is.
func (c *Controller) mapped(ctx context.Context, w watch, e cache.Event) {
	defer c.guard(ctx)
	o := subject(e)
	for _, m := range w.mappers {
		for _, key := range m(e.Old, e.New) {
			switch {
			case !e.Initial:
				c.queue.Add(key, queue.Child, c.cause(queue.CauseChild, o))
			case !c.isWatched(key.Parent.GVK):
				c.queue.Add(key, queue.Resync, c.cause(queue.CauseInitial, o))
			}
		}
	}
}

// subject is the object that an event is about, in its newest state.
func subject(e cache.Event) *object.Object {
	if e.New != nil {
		return e.New
	}
	return e.Old
}

// TraceParentAnnotation is where an object may carry a W3C trace context (KEP-5915).
const TraceParentAnnotation = "tracing.k8s.io/traceparent"

func (c *Controller) cause(kind queue.CauseKind, o *object.Object) queue.Cause {
	return queue.Cause{
		Kind: kind, Ref: o.Ref(), ResourceVersion: o.ResourceVersion(), At: c.settings.Clock.Now(),
		TraceParent: o.Annotations()[TraceParentAnnotation],
	}
}

// guard keeps a panic in a filter or a mapper from ending the process.
func (c *Controller) guard(ctx context.Context) {
	if cause := recover(); cause != nil {
		klog.FromContext(
			ctx,
		).Error(
			nil,
			"panic in an event's mapper",
			"panic",
			fmt.Sprint(cause),
			"stack",
			string(debug.Stack()),
		)
	}
}

// work runs workers, sources and resyncs until ctx is done, and waits for all of them.
func (c *Controller) work(ctx context.Context) {
	var wait sync.WaitGroup
	label := func(flow string, f func(context.Context)) {
		wait.Go(func() { pprof.Do(ctx, pprof.Labels("controller", c.name, "flow", flow), f) })
	}
	// Reconciles under way outlive ctx by the grace period.
	under, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	under = context.WithValue(under, slotsKey{}, c)
	worker := func() { label("queue → reconcile", func(ctx context.Context) { c.worker(ctx, under) }) }
	c.slots = newSlots(c.settings.Workers, c.settings.Waits, worker)
	for range c.settings.Workers {
		worker()
	}
	for _, s := range c.sources {
		label("source → queue", func(ctx context.Context) { c.source(ctx, s) })
	}
	if c.settings.ResyncPeriod > 0 {
		label("resync → queue", c.resync)
	}
	if c.settings.Metrics != nil {
		label("queue → metrics", c.measure)
	}
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), ErrStopNow) {
		cancel()
	}
	c.queue.ShutDown()
	done := make(chan struct{})
	go func() {
		wait.Wait()
		close(done)
	}()
	timer := c.settings.Clock.NewTimer(c.settings.GracePeriod)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C():
		klog.FromContext(ctx).Info("grace period is over: reconciles under way are cancelled")
		cancel()
		<-done
	}
}

// worker reconciles keys one after the other. It holds a slot, and ends where that is needed
// elsewhere.
func (c *Controller) worker(ctx, under context.Context) {
	for ctx.Err() == nil {
		resting, idle := c.slots.rest(ctx)
		item, ok := c.queue.Get(resting)
		c.slots.rested(idle)
		if ok {
			c.one(under, item)
		}
		if c.slots.yield() {
			return
		}
	}
	c.slots.leave()
}

// one reconciles one key and decides when it comes again.
func (c *Controller) one(ctx context.Context, item queue.Item) {
	defer c.queue.Done(item.Key)
	item, ok := c.showsWrites(ctx, item)
	if !ok {
		return
	}
	result, err := c.reconcileExpecting(ctx, item)
	if err != nil {
		c.unreadable(item.Key, err)
		c.queue.Retry(item.Key, queue.Cause{Kind: queue.CauseRetry, At: c.settings.Clock.Now()})
		return
	}
	if !result.Skipped {
		c.queue.Forget(item.Key)
	}
	if result.RequeueAfter > 0 {
		c.queue.AddAfter(item.Key, result.RequeueAfter, result.Priority,
			queue.Cause{Kind: queue.CauseRequeue, At: c.settings.Clock.Now().Add(result.RequeueAfter)})
	}
}

// protected turns a panic of the reconciler into an error.
func (c *Controller) protected(ctx context.Context, item queue.Item) (r Result, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			klog.FromContext(
				ctx,
			).Error(
				nil,
				"panic in a reconcile",
				"key",
				item.Key.String(),
				"panic",
				fmt.Sprint(cause),
				"stack",
				string(debug.Stack()),
			)
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	return c.reconciler.Reconcile(ctx, item)
}
