package supervisor

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/hookloop/hookloop/engine/api/v1alpha1"
	"github.com/hookloop/hookloop/engine/change"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/loop"
	"github.com/hookloop/hookloop/engine/internal/loop/queue"
	"github.com/hookloop/hookloop/engine/internal/report"
	"github.com/hookloop/hookloop/engine/object"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
)

// Reconcile starts, restarts or stops the controller of one declaring object.
func (s *Supervisor) Reconcile(ctx context.Context, item queue.Item[object.Ref]) (loop.Result, error) {
	key := item.Key
	o, err := s.declaring(key)
	if err != nil { // a declaring object that is not known may not be taken for one that is gone
		return loop.Result{}, err
	}
	defer s.looked(ctx, key) // a start that takes its time keeps the process from being ready until the next look
	switch {
	case o == nil || o.Deleting():
		s.stop(ctx, key, o)
		s.starts.forget(key)
		s.missing.forget(key)
		return loop.Result{}, s.gone(ctx, key)
	case !s.TargetSelector.Matches(labels.Set(o.Labels())):
		s.stop(ctx, key, o)
		return loop.Result{}, nil
	}
	config, err := s.resolve(o)
	if err != nil {
		s.stop(ctx, key, o)
		return s.refused(ctx, key, o, err, 0)
	}
	again := loop.Result{RequeueAfter: s.noteInputs(ctx, key, config)}
	if wait, err := s.ensure(ctx, key, config); err != nil {
		return s.refused(ctx, key, o, err, wait)
	} else if wait > 0 {
		return loop.Result{RequeueAfter: wait}, nil
	}
	if !s.announce(ctx, key, o) {
		again.RequeueAfter = lookAgain
	}
	health := config.withInputs(s.conflict(ctx, key, o, s.health(key)))
	notices := s.noticed(key, o)
	news, err := s.reportAll(ctx, o, config.summary(), append([]hook.Condition{health}, notices...)...)
	if news {
		s.recordNotices(ctx, o, notices)
	}
	if news && health.Reason == v1alpha1.ReasonStaleView {
		s.Events.Warning(ctx, o, health.Reason, health.Message)
	}
	return again, err
}

// noticed returns the conditions of a running controller that its hooks' transports report.
func (s *Supervisor) noticed(key object.Ref, o *object.Object) []hook.Condition {
	s.mu.Lock()
	i := s.running[key]
	s.mu.Unlock()
	if i.notices == nil {
		return nil
	}
	return i.notices.conditions(i.config.declared, func(condition string) bool {
		status, _ := report.Has(o, condition)
		return status != ""
	})
}

// recordNotices records an Event for each condition that has changed its status or reason.
func (s *Supervisor) recordNotices(ctx context.Context, o *object.Object, now []hook.Condition) {
	for _, c := range now {
		status, reason := report.Has(o, c.Type)
		if reason == c.Reason && status == c.Status || status == "" && c.Reason == v1alpha1.ReasonMatch {
			continue
		}
		switch {
		case c.Type == v1alpha1.ConditionHooksMatch && c.Status != metav1.ConditionTrue:
			s.Events.Warning(ctx, o, "HooksMismatch", c.Message)
		case c.Type == v1alpha1.ConditionIntercepted:
			s.Events.Normal(ctx, o, c.Reason, c.Message)
		case c.Type == v1alpha1.ConditionFallback && c.Status == metav1.ConditionTrue:
			s.Events.Warning(ctx, o, "FallbackAnswers", c.Message)
		case c.Type == v1alpha1.ConditionFallback && status != "":
			s.Events.Normal(ctx, o, "FallbackEnded", c.Message)
		}
	}
}

// looked records, for Ready, that a declaring object has been reconciled: its controller runs, or a
// condition gives the reason why not. A controller that still waits for its lists does not count.
func (s *Supervisor) looked(ctx context.Context, key object.Ref) {
	s.mu.Lock()
	i := s.running[key]
	s.mu.Unlock()
	if i != nil && !i.ready() && s.troubles(i.config) == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := len(s.pending)
	delete(s.pending, key)
	if before > 0 && len(s.pending) == 0 {
		s.logReady(ctx)
	}
}

// logReady logs that all controllers that were declared at the start have been reconciled. The
// caller holds mu.
func (s *Supervisor) logReady(ctx context.Context) {
	objects := 0
	stats := s.Cache.Stats()
	for _, r := range stats {
		objects += r.Objects
	}
	klog.FromContext(ctx).Info("ready", "controllers", len(s.running), "resources", len(stats), "objects", objects)
}

// lookAgain is the time between two reconciles of a controller that is starting: the reason of the
// delay may become known.
const lookAgain = 5 * time.Second

// announce records once that a controller has started, and reports whether it has.
func (s *Supervisor) announce(ctx context.Context, key object.Ref, o *object.Object) bool {
	s.mu.Lock()
	i := s.running[key]
	ready := i.ready()
	news := ready && !i.announced
	i.announced = i.announced || news
	s.mu.Unlock()
	if news {
		s.starts.ready(key)
		change.Effective(ctx)
		s.Events.Normal(ctx, o, "Started", "Started controller: "+o.Name())
		s.warnWithoutStatus(ctx, o, i.config)
	}
	return ready
}

// ensure starts the controller, or restarts it if its configuration changed. If the last start
// failed, it returns the wait before the next try, with an error if the failure is new.
func (s *Supervisor) ensure(ctx context.Context, key object.Ref, c *config) (time.Duration, error) {
	s.mu.Lock()
	present := s.running[key]
	s.mu.Unlock()
	if present != nil && present.config.same(c) {
		if !present.ended() {
			return 0, nil
		}
		return s.ended(ctx, key, present)
	}
	if wait := s.starts.wait(key, c); wait > 0 {
		return wait, nil
	}
	s.stop(ctx, key, c.object)
	if err := s.moved(ctx, key, c); err != nil {
		return 0, err
	}
	if !s.starts.again(key, c) {
		s.Events.Normal(ctx, c.object, "Starting", "Starting controller: "+c.object.Name())
	}
	started, err := s.start(ctx, key, c)
	switch {
	case err == nil: // even if ctx has ended meanwhile: stopAll must find it
		s.mu.Lock()
		s.running[key] = started
		s.mu.Unlock()
		return 0, nil
	case ctx.Err() != nil:
		return 0, err
	}
	s.stopped(c)
	return s.starts.fail(key, c), err
}

// ended removes a controller that failed after its start, and returns the wait before the next
// start and the error.
func (s *Supervisor) ended(ctx context.Context, key object.Ref, i *instance) (time.Duration, error) {
	s.mu.Lock()
	delete(s.running, key)
	s.mu.Unlock()
	s.nudgeRivals(i.rivals)
	err := errors.Join(s.startFault(ctx, i.config, i.err), i.close())
	s.stopped(i.config)
	return s.starts.fail(key, i.config), err
}

// stopped calls Config.Stopped.
func (s *Supervisor) stopped(c *config) {
	if s.Stopped != nil {
		s.Stopped(c.name(), c.object.Ref())
	}
}

// stop stops a controller and waits for its running syncs. o is the declaring object; nil if it
// is deleted.
func (s *Supervisor) stop(ctx context.Context, key object.Ref, o *object.Object) {
	s.mu.Lock()
	present := s.running[key]
	delete(s.running, key)
	s.mu.Unlock()
	if present == nil {
		return
	}
	if o == nil {
		o = present.config.object
	}
	s.Events.Normal(ctx, o, "Stopping", "Stopping controller: "+key.Name)
	present.stop(ctx)
	s.nudgeRivals(present.rivals)
	s.stopped(present.config)
	s.Events.Normal(ctx, o, "Stopped", "Stopped controller: "+key.Name)
}

// stopAll stops all controllers at the same time, with a cause.
func (s *Supervisor) stopAll(cause error) {
	s.mu.Lock()
	instances := s.running
	s.running = map[object.Ref]*instance{}
	s.mu.Unlock()
	for _, i := range instances {
		i.cancel(cause)
	}
	for _, i := range instances {
		i.stop(context.Background())
	}
}

// refused reports on the declaring object why its controller does not run. A fault that only a new
// spec or a new resource can repair waits for that; others are retried after wait or, if wait is 0,
// after the backoff of the declaring object.
func (s *Supervisor) refused(
	ctx context.Context,
	key object.Ref,
	o *object.Object,
	err error,
	wait time.Duration,
) (loop.Result, error) {
	if ctx.Err() != nil {
		return loop.Result{}, ctx.Err()
	}
	var fault *Fault
	if !errors.As(err, &fault) {
		fault = &Fault{Reason: "StartFailed", Problem: err.Error(), Retry: true}
	}
	news, reportErr := s.report(ctx, o, hook.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: fault.Reason, Message: fault.Problem,
	})
	if reportErr != nil {
		return loop.Result{}, reportErr
	}
	var grace time.Duration
	if fault.Missing {
		grace, news = s.missing.note(key, fault.Problem)
	}
	if news {
		s.Events.Warning(ctx, o, "CreateError", "Cannot start controller: "+fault.Problem)
	}
	switch {
	case !fault.Retry:
		return loop.Result{RequeueAfter: grace}, nil
	case wait > 0:
		klog.FromContext(ctx).Error(err, "the controller does not run", "object", o.Ref().String(), "retryAfter",
			wait.String())
		return loop.Result{RequeueAfter: wait}, nil
	default:
		return loop.Result{}, err
	}
}

// report writes the condition Ready of a declaring object if it differs. It reports whether it did.
func (s *Supervisor) report(ctx context.Context, o *object.Object, c hook.Condition) (bool, error) {
	return s.reportAll(ctx, o, nil, c)
}

// reportAll writes fields and conditions, Ready first, into the status of a declaring object if
// they differ. It reports whether Ready did.
func (s *Supervisor) reportAll(
	ctx context.Context,
	o *object.Object,
	fields map[string]any,
	conditions ...hook.Condition,
) (bool, error) {
	if _, dropped := s.noSummary.Load(o.GVK().Kind); dropped {
		fields = nil
	}
	resource := resourceOf(o.Ref())
	status := maps.Clone(fields)
	if generation := report.Generation(resource, o); generation != 0 {
		if status == nil {
			status = map[string]any{}
		}
		status["observedGeneration"] = generation
	}
	written, err := s.Status.SetConditions(ctx, s.Clock, resource, o, status, conditions...)
	if errors.Is(err, act.ErrStale) { // the newer object's event brings the next look
		return false, nil
	}
	if err != nil {
		klog.FromContext(ctx).Error(err, "condition not written", "object", o.Ref().String())
	}
	if written != nil {
		change.Effective(ctx)
		s.checkSummary(written, fields)
		if s.Observer != nil {
			s.Observer.Reported(displayName(o.Ref()), conditions)
		}
	}
	return written != nil, err
}

// checkSummary records that the API server drops the summary, because the installed CRDs are older
// than this program: then it is not written again.
func (s *Supervisor) checkSummary(written *object.Object, fields map[string]any) {
	status, err := report.StatusOf(written)
	if err != nil {
		return
	}
	for name := range fields {
		if _, kept := status[name]; !kept {
			s.noSummary.Store(written.GVK().Kind, true)
		}
	}
}

// Fault is the reason why a declared controller does not run.
type Fault struct {
	// Reason is the reason of the condition Ready.
	Reason  string
	Problem string
	// Retry reports that a retry may help although no change was observed.
	Retry bool
	// Missing reports that the API server does not serve a resource, which is often repaired within
	// seconds.
	Missing bool
}

func (f *Fault) Error() string { return f.Problem }
