package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/ask/customize"
	"github.com/hookloop/hookloop/engine/internal/ask/reach"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/observe"
	"github.com/hookloop/hookloop/engine/internal/pipeline"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// instance holds one running controller and the parts that were made for it. start makes it, and
// stop ends it and waits for its goroutines.
type instance struct {
	config *config
	health *health
	// notices are reported by the hooks' transports beside answers.
	notices *notices
	cancel  context.CancelCauseFunc
	// filled is closed when the caches are filled. announced reports that an Event was recorded; it
	// belongs to the reconcile of the declaring object.
	filled    chan struct{}
	announced bool
	// done is closed when the controller has stopped; err is its result afterwards.
	done  chan struct{}
	err   error
	hooks []*hook.Opened
	run   *loop.Loop[hook.Key]
	// rivals are the other controllers, of those that were reported, that write the status of the
	// same parents. The supervisor's mu guards it.
	rivals []rival
	// related adds related objects to the hooks' questions.
	related *customize.Customizer
	// reach retries the parents of a hook when the hook is reached again.
	reach    *reach.Tracker[hook.Key]
	pipeline *pipeline.Pipeline
}

// start makes a controller and returns when its caches are filled, when it has failed, or after
// startTimeout: then it continues in the background, and the declaring object is reconciled again.
func (s *Supervisor) start(ctx context.Context, key object.Ref, c *config) (*instance, error) {
	asks := newTrigger(c, s.log)
	n := &notices{changed: func() { s.nudge(key) }, served: map[hook.Op][]hook.Op{}}
	if s.Intercepts != nil {
		n.intercepts = func(count int) { s.Intercepts(c.name(), count) }
	}
	hooks, opened, err := s.openHooks(c, asks.ask, n)
	if err != nil {
		return nil, err
	}
	shape, err := c.shape(c.object, &c.found)
	if err != nil {
		return nil, errors.Join(&Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: err.Error()}, closeHooks(opened))
	}
	h := &health{recorder: s.Recorder, changed: func() { s.nudge(key) }}
	run := s.newController(c)
	shape.Watch(run)
	i := &instance{
		config: c, health: h, notices: n, filled: make(chan struct{}), done: make(chan struct{}), hooks: opened, run: run,
		related: s.customize(key, c, hooks, run),
	}
	parted, _ := shape.(observe.PartedShape)
	sample := run.Sample
	if parted != nil {
		parted.Tracker().Start(s.Clock, partQueue{run})
		sample = parted.Tracker().Sample
	}
	i.reach = reach.New(
		reach.Config[hook.Key]{Clock: s.Clock, Other: sample, Enqueue: func(key hook.Key, after time.Duration) {
			run.EnqueueAfter(key, after, queue.Child, queue.CauseRetry)
		}},
	)
	run.Source(func(ctx context.Context, _ loop.Enqueue[hook.Key]) error { return i.reach.Run(ctx) })
	asks.invalidate = i.related.Invalidate
	asks.run.Store(run)
	run.ViewsChanged(func() {
		s.nudge(key)
		asks.replay()
	})
	run.Initialize(func(context.Context, loop.Runtime[hook.Key]) error {
		close(i.filled)
		s.nudge(key)
		return nil
	})
	i.pipeline = s.newPipeline(i, shape, hooks)
	reconciler := pipeline.Refreshing(i.pipeline, i.related)
	if parted != nil {
		reconciler = pipeline.Beginning(reconciler, parted, i.pipeline.IsEcho)
	}
	run.Reconcile(reconciler)
	return s.launch(ctx, key, i, run)
}

// newController returns the runtime of a controller.
func (s *Supervisor) newController(c *config) *loop.Loop[hook.Key] {
	return loop.New[hook.Key](c.name(), loop.Config{
		Cache:        s.Cache,
		Clock:        s.Clock,
		Workers:      s.Workers,
		Waits:        s.Waits,
		GracePeriod:  s.GracePeriod,
		Metrics:      s.QueueMetrics,
		Gate:         s.Gate,
		MetricsName:  c.object.GVK().Kind + "-" + c.object.Name(),
		ResyncPeriod: c.resync,
	})
}

// newPipeline returns the pipeline of a controller.
func (s *Supervisor) newPipeline(
	i *instance, shape observe.Shape, hooks map[hook.Op]*hook.Opened,
) *pipeline.Pipeline {
	c := i.config
	settings := pipeline.Config{
		Name:          c.name(),
		Controller:    c.object,
		Parents:       c.found.parents,
		Shape:         shape,
		OwnsStatus:    c.kind.OwnsStatus,
		Apply:         s.Apply,
		Hooks:         hooks,
		Reader:        i.run.Reader(),
		Writer:        s.Writer,
		Status:        s.Status,
		Events:        s.Events,
		Recorder:      i.health,
		Tracer:        s.Tracer,
		Clock:         s.Clock,
		ClusterUID:    s.ClusterUID,
		Sampled:       s.Sampled,
		Circuit:       s.Circuit,
		Reach:         i.reach,
		Holders:       []pipeline.Holder{i.related, i.reach},
		DeletionLimit: cmp.Or(c.deletionLimit, s.DeletionLimit),
		Account:       s.Account,
	}
	if s.Observer != nil {
		settings.Observer = s.Observer
	}
	if parted, ok := shape.(observe.PartedShape); ok {
		settings.Rounds = parted.Tracker()
		settings.Recorder = pipeline.Ending(i.health, parted, i.run.Reader())
		settings.Holders = append(settings.Holders, parted.Tracker())
	}
	return pipeline.New(settings)
}

// customize wraps the hooks of a controller, so that their questions have the related objects that
// the customize hook selects or, without one, the hook's own answers.
func (s *Supervisor) customize(
	key object.Ref,
	c *config,
	hooks map[hook.Op]*hook.Opened,
	run *loop.Loop[hook.Key],
) *customize.Customizer {
	names := c.kind.Operations[0] // sync or map
	if hooks[hook.Customize] != nil {
		names = hook.Customize
	}
	related := customize.New(customize.Config{
		Kind: c.kind.ControllerKind, Controller: c.object, Hook: hooks[hook.Customize],
		V1:     c.hooks[names] == nil || c.hooks[names].Version != v1alpha1.HookV2,
		MaxAge: s.CustomizeMaxAge,
		Cache:  s.Cache, Discovery: s.Discovery, ViewsChanged: func() { s.nudge(key) }, Clock: s.Clock,
		Enqueue: func(key hook.Key, changed *object.Object) {
			cause := queue.Cause{Kind: queue.CauseRelated}
			if changed != nil {
				cause.Ref, cause.ResourceVersion = changed.Ref(), changed.ResourceVersion()
			}
			run.Enqueue(key, queue.Child, cause)
		},
	})
	for _, op := range c.kind.Operations {
		if next, declared := hooks[op]; declared && op != hook.Customize {
			hooks[op] = related.Wrap(next)
		}
	}
	run.Source(func(ctx context.Context, _ loop.Enqueue[hook.Key]) error { return related.Follow(ctx) })
	return related
}

// startTimeout bounds the time for which a start occupies a worker of the supervisor.
const startTimeout = 2 * time.Second

// launch runs the controller in a goroutine and waits for it as start does. The controller outlives
// ctx: the supervisor stops it.
func (s *Supervisor) launch(
	ctx context.Context,
	key object.Ref,
	i *instance,
	run *loop.Loop[hook.Key],
) (*instance, error) {
	running, cancel := context.WithCancelCause(klog.NewContext(change.Detached(context.WithoutCancel(ctx)), s.log))
	i.cancel = cancel
	go func() {
		defer close(i.done)
		i.err = run.Run(running)
	}()
	timer := s.Clock.NewTimer(startTimeout)
	defer timer.Stop()
	select {
	case <-i.filled:
	case <-timer.C():
	case <-ctx.Done():
		i.stop(ctx)
		return nil, ctx.Err()
	case <-i.done:
		cancel(nil)
		return nil, errors.Join(s.startFault(ctx, i.config, i.err), i.close())
	}
	go s.awaitEnd(key, i)
	return i, nil
}

// awaitEnd waits for the end of a controller, and enqueues the declaring object if the controller
// failed.
func (s *Supervisor) awaitEnd(key object.Ref, i *instance) {
	<-i.done
	if i.err != nil {
		s.nudge(key)
	}
}

// startFault returns the fault of a controller that cannot watch its resources. It names all
// missing rights together.
func (s *Supervisor) startFault(ctx context.Context, c *config, err error) error {
	var unwatchable *cache.UnwatchableError
	if !errors.As(err, &unwatchable) {
		return fmt.Errorf("starting: %w", err)
	}
	fault := &Fault{Reason: v1alpha1.ReasonParentNotFound, Problem: err.Error(), Retry: true}
	switch {
	case unwatchable.Forbidden():
		fault.Reason = v1alpha1.ReasonForbidden
		fault.Problem = s.missingRights(ctx, c, err)
	case slices.Contains(c.found.children, unwatchable.Resource):
		fault.Reason = v1alpha1.ReasonChildNotFound
	case slices.Contains(c.found.inputs, unwatchable.Resource):
		fault.Reason = v1alpha1.ReasonInputNotFound
	}
	return fault
}

// missingRights returns the rights that a controller needs and the engine lacks, for a message. If
// they cannot be named, it returns denied, which is the API server's answer.
func (s *Supervisor) missingRights(ctx context.Context, c *config, denied error) string {
	if s.May == nil {
		return denied.Error()
	}
	missing, err := s.May.missing(ctx, s.rightsOf(c))
	if err != nil || len(missing) == 0 { // denied by what no review shows, or granted meanwhile
		if err != nil {
			klog.FromContext(ctx).Error(err, "missing rights cannot be named", "controller", c.name())
		}
		return denied.Error()
	}
	text, err := explain("hookloop-"+strings.ReplaceAll(c.name(), "/", "-"), missing)
	if err != nil {
		return denied.Error()
	}
	return text
}

// stop ends the controller, waits for it and closes its hooks.
func (i *instance) stop(ctx context.Context) {
	i.cancel(nil)
	<-i.done
	if err := i.close(); err != nil {
		klog.FromContext(ctx).Error(err, "hook not closed", "controller", i.config.object.Name())
	}
}

// close releases the resources of a controller that has ended.
func (i *instance) close() error {
	i.related.Close()
	i.pipeline.Close()
	return closeHooks(i.hooks)
}

// ended reports whether the controller has stopped.
func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// health is the condition Ready of a running controller, which shows whether its hooks are reached.
type health struct {
	recorder pipeline.Recorder
	changed  func()

	mu sync.Mutex // guards the fields below
	// misses counts consecutive syncs that did not reach the hook.
	misses int
	reason string
	last   string
	// dropped reports that the parents keep no status.
	dropped bool
	// answersStatus reports that a hook answered a status for parents with a shared status.
	answersStatus bool
}

// missesToReport is the number of consecutive syncs that must miss the hook before the condition
// changes: one lost connection is retried immediately.
const missesToReport = 3

// Synced records one sync, and passes it on.
func (h *health) Synced(name string, o pipeline.Outcome) {
	h.recorder.Synced(name, o)
	if !o.Asked {
		return
	}
	h.mu.Lock()
	before := h.reason
	dropped := h.dropped
	answers := h.answersStatus
	h.dropped = h.dropped || o.StatusDropped
	h.answersStatus = h.answersStatus || o.AnswersStatus
	switch kind := hook.ErrorKindOf(o.Err); kind {
	case hook.Unreachable, hook.TimedOut:
		// the first message stays: ports and times differ each time
		h.misses++
		if h.misses >= missesToReport && h.reason != string(kind) {
			h.reason, h.last = string(kind), o.Err.Error()
		}
	default:
		h.misses = 0
		h.reason = ""
		h.last = ""
	}
	changed := before != h.reason || dropped != h.dropped || answers != h.answersStatus
	h.mu.Unlock()
	if changed {
		h.changed()
	}
}

// condition returns the condition Ready.
func (h *health) condition() hook.Condition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: h.reason, Message: h.last}
	}
	if h.dropped {
		return hook.Condition{
			Type:   v1alpha1.ConditionReady,
			Status: metav1.ConditionTrue,
			Reason: v1alpha1.ReasonStatusDropped,
			Message: "the controller is running; the parents' resource does not have subresource 'Status' " +
				"enabled, and no field status: what the hook answers is lost",
		}
	}
	return hook.Condition{
		Type:    v1alpha1.ConditionReady,
		Status:  metav1.ConditionTrue,
		Reason:  v1alpha1.ReasonRunning,
		Message: "the controller is running",
	}
}

// health returns the condition Ready of the controller that runs for key.
func (s *Supervisor) health(key object.Ref) hook.Condition {
	s.mu.Lock()
	i := s.running[key]
	s.mu.Unlock()
	if !i.ready() {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonStarting, Message: s.starting(i.config)}
	}
	if stale := slices.Concat(i.run.Unreadable(), i.related.Unreadable()); len(stale) > 0 {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: v1alpha1.ReasonStaleView, Message: staleMessage(stale)}
	}
	return i.health.condition()
}

// staleMessage lists the resources with a stale view, each with the time and the API server's
// answer.
func staleMessage(stale []*view.Error) string {
	var views []string
	for _, e := range stale {
		if text := e.Error(); !slices.Contains(views, text) {
			views = append(views, text)
		}
	}
	return "parents that need them are not synced: " + strings.Join(views, "; ")
}

// ready reports whether the controller's caches are filled.
func (i *instance) ready() bool {
	select {
	case <-i.filled:
		return true
	default:
		return false
	}
}

// starting returns the message of a controller that is starting: the resources it waits for.
func (s *Supervisor) starting(c *config) string {
	if trouble := s.troubles(c); trouble != "" {
		return trouble
	}
	return "the controller's caches are being filled"
}

// troubles lists the resources of a controller that the API server cannot list, with its answers;
// empty if it can list all.
func (s *Supervisor) troubles(c *config) string {
	for _, r := range c.found.watched() {
		if err := s.Cache.LastError(r); err != nil {
			return fmt.Sprintf("the objects of %s are not known yet: %v", r, err)
		}
	}
	return ""
}
