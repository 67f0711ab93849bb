package supervisor

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/customize"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/object"
	"github.com/hookloop/hookloop/engine/pipeline"
	"github.com/hookloop/hookloop/engine/report"
	"k8s.io/klog/v2"
)

// instance is one running controller.
type instance struct {
	config *config
	health *health
	cancel context.CancelFunc
	// done is closed when the controller has stopped; err is its result from then on.
	done  chan struct{}
	err   error
	hooks []*hook.Opened
	// related is nil without a customize hook.
	related *customize.Customizer
}

// start builds a controller and returns when its caches are filled, or when it has failed.
func (s *Supervisor) start(ctx context.Context, key object.Key, c *config) (*instance, error) {
	hooks, opened, err := s.openHooks(c)
	if err != nil {
		return nil, err
	}
	shape, err := c.shape(c.object, c.resources, c.owned)
	if err != nil {
		return nil, errors.Join(&Fault{Reason: v1alpha1.ReasonInvalidSpec, Problem: err.Error()}, closeHooks(opened))
	}
	h := &health{recorder: s.Recorder, changed: func() { s.nudge(key) }}
	run := controller.New(c.name(), controller.Settings{
		Cache: s.Cache, Clock: s.Clock, Workers: s.Workers, GracePeriod: s.GracePeriod, Metrics: s.QueueMetrics,
		MetricsName: c.object.GVK().Kind + "-" + c.object.Name(), ResyncPeriod: c.resync,
	})
	shape.Wire(run)
	i := &instance{config: c, health: h, done: make(chan struct{}), hooks: opened, related: s.customize(c, hooks, run)}
	if i.related != nil {
		h.gone = i.related.Forget
	}
	filled := make(chan struct{})
	run.Initialize(func(context.Context, controller.Runtime) error { close(filled); return nil })
	run.Reconcile(pipeline.New(pipeline.Settings{
		Name: c.name(), Controller: c.object, Parents: c.resources, Shape: shape, OwnsStatus: c.ownsStatus, Apply: s.Apply, Hooks: hooks, Reader: s.Cache.Reader(),
		Writer: s.Writer, Status: s.Status, Events: s.Events, Recorder: h, Tracer: s.Tracer, Clock: s.Clock,
		ClusterUID: s.ClusterUID, Sampled: s.Sampled,
	}))
	return s.launch(ctx, key, i, run, filled)
}

// customize has the hooks of a controller asked with related objects, where it declares a customize hook; else it returns nil.
func (s *Supervisor) customize(c *config, hooks map[hook.Op]*hook.Opened, run *controller.Controller) *customize.Customizer {
	asked, ok := hooks[hook.Customize]
	if !ok {
		return nil
	}
	related := customize.New(customize.Settings{
		Contract: c.contract, Controller: c.object, Hook: asked, V1: c.hooks[hook.Customize].Version != v1alpha1.HookV2,
		Cache: s.Cache, Discovery: s.Discovery, Enqueue: run.Enqueue, Clock: s.Clock,
	})
	for _, op := range []hook.Op{hook.Sync, hook.Finalize} {
		if next, declared := hooks[op]; declared {
			hooks[op] = related.Wrap(next)
		}
	}
	run.Source(func(ctx context.Context, _ controller.Enqueue) error { return related.Follow(ctx) })
	return related
}

// launch runs the controller in a goroutine of its own and waits until it is filled or has ended. It outlives ctx: the supervisor
// stops it.
func (s *Supervisor) launch(ctx context.Context, key object.Key, i *instance, run *controller.Controller, filled <-chan struct{}) (*instance, error) {
	running, cancel := context.WithCancel(klog.NewContext(context.WithoutCancel(ctx), s.log))
	i.cancel = cancel
	go func() {
		defer close(i.done)
		i.err = run.Run(running)
		if i.err != nil {
			klog.FromContext(ctx).Error(i.err, "controller has ended", "controller", i.config.object.Name())
			s.nudge(key)
		}
	}()
	select {
	case <-filled:
		return i, nil
	case <-ctx.Done():
		i.stop(ctx)
		return nil, ctx.Err()
	case <-i.done:
		cancel()
		return nil, errors.Join(startFault(i.err), i.close())
	}
}

// startFault explains why a controller could not watch what it needs.
func startFault(err error) error {
	var unwatchable *cache.UnwatchableError
	if !errors.As(err, &unwatchable) {
		return fmt.Errorf("starting: %w", err)
	}
	reason := v1alpha1.ReasonParentNotFound
	if unwatchable.Forbidden() {
		reason = v1alpha1.ReasonForbidden
	}
	return &Fault{Reason: reason, Problem: err.Error(), Retry: true}
}

// stop ends the controller, waits for it and closes its hooks.
func (i *instance) stop(ctx context.Context) {
	i.cancel()
	<-i.done
	if err := i.close(); err != nil {
		klog.FromContext(ctx).Error(err, "hook not closed", "controller", i.config.object.Name())
	}
}

// close frees what a controller that has ended still holds.
func (i *instance) close() error {
	if i.related != nil {
		i.related.Close()
	}
	return closeHooks(i.hooks)
}

// ended says whether the controller has stopped by itself.
func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// nudge has the supervisor look at a declaring object again. A full channel means that enough looks are due.
func (s *Supervisor) nudge(key object.Key) {
	select {
	case s.nudges <- key:
	default:
	}
}

// health is the condition Ready of a running controller: it follows whether its hooks are reached.
type health struct {
	recorder pipeline.Recorder
	changed  func()
	// gone hears of parents that are gone; it may be nil.
	gone func(object.Key)

	mu sync.Mutex // guards what follows
	// misses counts syncs in a row in which the hook was not reached.
	misses int
	reason string
	last   string
	// dropped says that the parents keep no status.
	dropped bool
}

// missesToReport is how many syncs in a row must miss the hook before the controller says so: one lost connection is no news.
const missesToReport = 3

// Synced takes one sync into account and passes it on.
func (h *health) Synced(name string, o pipeline.Outcome) {
	h.recorder.Synced(name, o)
	if h.gone != nil && o.Result == pipeline.Gone {
		h.gone(o.Key)
	}
	if !o.Asked {
		return
	}
	h.mu.Lock()
	before, dropped := h.reason, h.dropped
	h.dropped = h.dropped || o.StatusDropped
	switch kind := hook.KindOf(o.Err); kind {
	case hook.Unreachable, hook.TimedOut:
		if h.misses++; h.misses >= missesToReport {
			h.reason, h.last = string(kind), o.Err.Error()
		}
	default:
		h.misses, h.reason, h.last = 0, "", ""
	}
	changed := before != h.reason || dropped != h.dropped
	h.mu.Unlock()
	if changed {
		h.changed()
	}
}

// condition is what the declaring object should say.
func (h *health) condition() report.Condition {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != "" {
		return report.Condition{Type: v1alpha1.ConditionReady, Status: false, Reason: h.reason, Message: h.last}
	}
	if h.dropped {
		return report.Condition{
			Type: v1alpha1.ConditionReady, Status: true, Reason: v1alpha1.ReasonStatusDropped,
			Message: "the controller is running; the parents' resource does not have subresource 'Status' enabled, and no field status: what the hook answers is lost",
		}
	}
	return report.Condition{Type: v1alpha1.ConditionReady, Status: true, Reason: v1alpha1.ReasonRunning, Message: "the controller is running"}
}

// health is the condition of the controller that runs for key.
func (s *Supervisor) health(key object.Key) report.Condition {
	s.mu.Lock()
	i := s.running[key]
	s.mu.Unlock()
	return i.health.condition()
}
