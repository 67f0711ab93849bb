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
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/change"
	"github.com/hookloop/hookloop/internal/engine/customize"
	"github.com/hookloop/hookloop/internal/engine/pipeline"
	"github.com/hookloop/hookloop/internal/engine/reach"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// instance is one running controller.
type instance struct {
	config *config
	health *health
	// notices are what the hooks' transports tell beside answers.
	notices *notices
	cancel  context.CancelCauseFunc
	// filled is closed when its caches are. told reports that this was told; it belongs to the
	// supervisor's one look at a time.
	filled chan struct{}
	told   bool
	// done is closed when the controller has stopped; err is its result from then on.
	done  chan struct{}
	err   error
	hooks []*hook.Opened
	run   *controller.Controller[hook.Key]
	// rivals are the other controllers that write the status of the same parents, as far as was
	// reported. The supervisor's mu guards it.
	rivals []rival
	// related shows the hooks related objects.
	related *customize.Customizer
	// reach has parents asked about again when their hook is reached.
	reach    *reach.Tracker[hook.Key]
	pipeline *pipeline.Pipeline
}

// start builds a controller and returns when its caches are filled, when it has failed, or when it
// takes longer than patience: then it goes on by itself, and the declaring object is looked at
// again.
func (s *Supervisor) start(ctx context.Context, key object.Ref, c *config) (*instance, error) {
	asks := newTrigger(c, s.log)
	heard := &notices{changed: func() { s.nudge(key) }, served: map[hook.Op][]hook.Op{}}
	if s.Intercepts != nil {
		heard.intercepts = func(n int) { s.Intercepts(c.name(), n) }
	}
	hooks, opened, err := s.openHooks(c, asks.ask, heard)
	if err != nil {
		return nil, err
	}
	shape, err := c.shape(c.object, c.resources, c.owned, s.Discovery.Custom)
	if err != nil {
		return nil, errors.Join(&Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: err.Error()}, closeHooks(opened))
	}
	h := &health{recorder: s.Recorder, changed: func() { s.nudge(key) }}
	run := controller.New[hook.Key](c.name(), controller.Settings{
		Cache:        s.Cache,
		Clock:        s.Clock,
		Workers:      s.Workers,
		Waits:        s.Waits,
		GracePeriod:  s.GracePeriod,
		Metrics:      s.QueueMetrics,
		MetricsName:  c.object.GVK().Kind + "-" + c.object.Name(),
		ResyncPeriod: c.resync,
	})
	shape.Watch(run)
	i := &instance{
		config: c, health: h, notices: heard, filled: make(chan struct{}), done: make(chan struct{}), hooks: opened, run: run,
		related: s.customize(key, c, hooks, run),
	}
	i.reach = reach.New(
		reach.Settings[hook.Key]{Clock: s.Clock, Other: run.Sample, Enqueue: func(key hook.Key, after time.Duration) {
			run.EnqueueAfter(key, after, queue.Child, queue.CauseRetry)
		}},
	)
	run.Source(func(ctx context.Context, _ controller.Enqueue[hook.Key]) error { return i.reach.Run(ctx) })
	asks.invalidate = i.related.Invalidate
	asks.run.Store(run)
	run.ViewsChanged(func() {
		s.nudge(key)
		asks.replay()
	})
	run.Initialize(func(context.Context, controller.Runtime[hook.Key]) error {
		close(i.filled)
		s.nudge(key)
		return nil
	})
	i.pipeline = pipeline.New(pipeline.Settings{
		Name:          c.name(),
		Controller:    c.object,
		Parents:       c.resources,
		Shape:         shape,
		OwnsStatus:    c.kind.OwnsStatus,
		Apply:         s.Apply,
		Hooks:         hooks,
		Reader:        run.Reader(),
		Writer:        s.Writer,
		Status:        s.Status,
		Events:        s.Events,
		Recorder:      h,
		Tracer:        s.Tracer,
		Clock:         s.Clock,
		ClusterUID:    s.ClusterUID,
		Sampled:       s.Sampled,
		Circuit:       s.Circuit,
		Reach:         i.reach,
		Holders:       []pipeline.Holder{i.related, i.reach},
		DeletionLimit: cmp.Or(c.deletionLimit, s.DeletionLimit),
		Account:       s.Account,
	})
	run.Reconcile(refreshing{i.pipeline, i.related})
	return s.launch(ctx, key, i, run)
}

// customize has the hooks of a controller asked with the related objects that its customize hook
// names or, without one, their own answers.
func (s *Supervisor) customize(
	key object.Ref,
	c *config,
	hooks map[hook.Op]*hook.Opened,
	run *controller.Controller[hook.Key],
) *customize.Customizer {
	names := hook.Sync
	if hooks[hook.Customize] != nil {
		names = hook.Customize
	}
	related := customize.New(customize.Settings{
		Kind: c.kind.ControllerKind, Controller: c.object, Hook: hooks[hook.Customize],
		V1:     c.hooks[names] == nil || c.hooks[names].Version != v1alpha1.HookV2,
		MaxAge: s.CustomizeMaxAge,
		Cache:  s.Cache, Discovery: s.Discovery, Enqueue: run.Enqueue, ViewsChanged: func() { s.nudge(key) }, Clock: s.Clock,
	})
	for _, op := range []hook.Op{hook.Sync, hook.Finalize} {
		if next, declared := hooks[op]; declared {
			hooks[op] = related.Wrap(next)
		}
	}
	run.Source(func(ctx context.Context, _ controller.Enqueue[hook.Key]) error { return related.Follow(ctx) })
	return related
}

// patience is how long a start may keep one of the supervisor's workers.
const patience = 2 * time.Second

// launch runs the controller in a goroutine of its own and waits for it as start says. It outlives
// ctx: the supervisor stops it.
func (s *Supervisor) launch(
	ctx context.Context,
	key object.Ref,
	i *instance,
	run *controller.Controller[hook.Key],
) (*instance, error) {
	running, cancel := context.WithCancelCause(klog.NewContext(change.Detached(context.WithoutCancel(ctx)), s.log))
	i.cancel = cancel
	go func() {
		defer close(i.done)
		i.err = run.Run(running)
	}()
	timer := s.Clock.NewTimer(patience)
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

// awaitEnd has the declaring object looked at when its controller ends by itself. It returns when
// the controller has ended, in any way.
func (s *Supervisor) awaitEnd(key object.Ref, i *instance) {
	<-i.done
	if i.err != nil {
		s.nudge(key)
	}
}

// startFault explains why a controller could not watch what it needs. Missing rights are all named
// at once.
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
	case slices.Contains(c.owned, unwatchable.Resource):
		fault.Reason = v1alpha1.ReasonChildNotFound
	}
	return fault
}

// missingRights names the rights that a controller needs and the engine does not have. It falls
// back to the API server's own answer, denied.
func (s *Supervisor) missingRights(ctx context.Context, c *config, denied error) string {
	if s.May == nil {
		return denied.Error()
	}
	missing, err := s.May.missing(ctx, rightsOf(c))
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

// close frees what a controller that has ended still holds.
func (i *instance) close() error {
	i.related.Close()
	i.pipeline.Close()
	return closeHooks(i.hooks)
}

// ended reports whether the controller has stopped by itself.
func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// health is the condition Ready of a running controller: it follows whether its hooks are reached.
type health struct {
	recorder pipeline.Recorder
	changed  func()

	mu sync.Mutex // guards the fields below
	// misses counts syncs in a row in which the hook was not reached.
	misses int
	reason string
	last   string
	// dropped reports that the parents keep no status.
	dropped bool
	// answersStatus reports that a hook has answered a status for parents whose status is not the
	// controller's own.
	answersStatus bool
}

// missesToReport is how many syncs in a row must miss the hook before the controller says so: one
// lost connection is no news.
const missesToReport = 3

// Synced takes one sync into account and passes it on.
func (h *health) Synced(name string, o pipeline.Outcome) {
	h.recorder.Synced(name, o)
	if !o.Asked {
		return
	}
	h.mu.Lock()
	before, dropped, answers := h.reason, h.dropped, h.answersStatus
	h.dropped, h.answersStatus = h.dropped || o.StatusDropped, h.answersStatus || o.AnswersStatus
	switch kind := hook.KindOf(o.Err); kind {
	case hook.Unreachable, hook.TimedOut:
		// what it said first stays: ports and times differ each time
		if h.misses++; h.misses >= missesToReport && h.reason != string(kind) {
			h.reason, h.last = string(kind), o.Err.Error()
		}
	default:
		h.misses, h.reason, h.last = 0, "", ""
	}
	changed := before != h.reason || dropped != h.dropped || answers != h.answersStatus
	h.mu.Unlock()
	if changed {
		h.changed()
	}
}

// condition is what the declaring object should say.
func (h *health) condition() hook.Condition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: h.reason, Message: h.last}
	}
	if h.dropped {
		return hook.Condition{
			Type:    v1alpha1.ConditionReady,
			Status:  metav1.ConditionTrue,
			Reason:  v1alpha1.ReasonStatusDropped,
			Message: "the controller is running; the parents' resource does not have subresource 'Status' enabled, and no field status: what the hook answers is lost",
		}
	}
	return hook.Condition{
		Type:    v1alpha1.ConditionReady,
		Status:  metav1.ConditionTrue,
		Reason:  v1alpha1.ReasonRunning,
		Message: "the controller is running",
	}
}

// health is the condition of the controller that runs for key.
func (s *Supervisor) health(key object.Ref) hook.Condition {
	s.mu.Lock()
	i := s.running[key]
	s.mu.Unlock()
	if !i.ready() {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStarting, Message: s.starting(i.config)}
	}
	if stale := slices.Concat(i.run.Unreadable(), i.related.Unreadable()); len(stale) > 0 {
		return hook.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStaleView, Message: staleMessage(stale)}
	}
	return i.health.condition()
}

// staleMessage names each resource whose view is stale, since when, and the API server's answer.
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

// starting says what a controller that starts is waiting for.
func (s *Supervisor) starting(c *config) string {
	if trouble := s.troubles(c); trouble != "" {
		return trouble
	}
	return "the controller's caches are being filled"
}

// troubles says which of a controller's resources the API server cannot list, and its answer; empty
// if there is none.
func (s *Supervisor) troubles(c *config) string {
	for _, r := range slices.Concat(c.resources, c.owned) {
		if err := s.Cache.LastError(r); err != nil {
			return fmt.Sprintf("the objects of %s are not known yet: %v", r, err)
		}
	}
	return ""
}
