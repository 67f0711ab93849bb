package pipeline

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"time"

	"github.com/hookloop/hookloop/engine/cache"
	"github.com/hookloop/hookloop/engine/controller"
	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/queue"
	"github.com/hookloop/hookloop/engine/view"
	"github.com/hookloop/hookloop/internal/engine/act"
	"github.com/hookloop/hookloop/internal/engine/plan"
	"github.com/hookloop/hookloop/internal/engine/report"
	"github.com/hookloop/hookloop/internal/engine/shape"
	"github.com/hookloop/hookloop/internal/panics"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
)

// Synced is the condition on a parent that reports whether its last sync had a fault.
const Synced = plan.Synced

// reasonStaleView is the reason of a sync that cannot read a view because its watch has failed for
// too long.
const reasonStaleView = "StaleView"

// retry says when a faulty sync is run again.
type retry int

const (
	// backoff: again after the item's exponential backoff.
	backoff retry = iota
	// quiet: as backoff, but nothing is said, because a newer observation heals it.
	quiet
	// later: after the time that the hook named, and nothing is said.
	later
	// onChange: not before something changes.
	onChange
	// pause: after a time that the fault names, on record.
	pause
)

// fault is one row of the error table, applied to an error.
type fault struct {
	reason string
	retry  retry
	after  time.Duration
	// known reports that the fault was recorded as an Event before.
	known bool
}

// rules is the one table from error to reason and retry; the first rule that knows the error wins.
var rules = []func(error) (fault, bool){
	fenced,         // another process may lead: it goes on
	unknownView,    // something that the sync reads is not known: nothing is decided without it
	shuttingDown,   // the process stops: the next leader goes on
	panicked,       // a fault of ours: on record, with backoff
	circuitOpen,    // a field is rewritten over and over: writes pause
	deletionsHeld,  // the answer would delete more than the controller allows
	badAnswer,      // the hook's answer was refused whole
	badParent,      // the parent waits for its owner to mend it
	hookFault,      // the hook failed or could not be reached
	nameTaken,      // a child's name belongs to somebody else
	staleView,      // a newer event heals it
	unwatchable,    // a related resource cannot be watched
	namespaceGoing, // creates are refused while the namespace terminates
	refusedByServer,
}

// classify applies the table.
func classify(err error) fault {
	for _, rule := range rules {
		if f, ok := rule(err); ok {
			return f
		}
	}
	return fault{reason: "SyncFailed"}
}

func fenced(err error) (fault, bool) {
	return fault{reason: "NotLeading", retry: quiet}, errors.Is(err, act.ErrFenced)
}

func shuttingDown(err error) (fault, bool) {
	return fault{reason: "ShuttingDown", retry: quiet}, errors.Is(err, context.Canceled) && hook.KindOf(err) == ""
}

func panicked(err error) (fault, bool) {
	var e *panics.Error
	var incomplete *plan.UnknownError
	return fault{reason: "InternalError"}, errors.As(err, &e) || errors.As(err, &incomplete)
}

// unknownView names the state of the view: a stale one is retried when it is good again.
func unknownView(err error) (fault, bool) {
	var e *view.Error
	if !errors.As(err, &e) {
		return fault{}, false
	}
	if e.State == view.Stale {
		return fault{reason: reasonStaleView}, true
	}
	return fault{reason: "ViewNotReady"}, true
}

func circuitOpen(err error) (fault, bool) {
	var e *OpenError
	if !errors.As(err, &e) {
		return fault{}, false
	}
	return fault{reason: "CircuitOpen", retry: pause, after: e.Wait, known: e.Repeated}, true
}

func deletionsHeld(err error) (fault, bool) {
	var e *plan.HeldError
	return fault{reason: "DeletionsHeld"}, errors.As(err, &e)
}

func badAnswer(err error) (fault, bool) {
	var e *plan.AnswerError
	return fault{reason: string(hook.Invalid)}, errors.As(err, &e)
}

func badParent(err error) (fault, bool) {
	var e *shape.ParentError
	return fault{reason: "InvalidParent", retry: onChange}, errors.As(err, &e)
}

func hookFault(err error) (fault, bool) {
	var e *hook.Error
	if !errors.As(err, &e) {
		return fault{}, false
	}
	f := fault{reason: string(e.Kind)}
	if e.Reason != "" {
		f.reason = e.Reason
	}
	switch {
	case e.Kind == hook.Throttled && e.RetryAfter > 0:
		f.retry, f.after = later, e.RetryAfter
	case e.Kind == hook.Rejected:
		f.retry = onChange
	}
	return f, true
}

func nameTaken(err error) (fault, bool) {
	var e *act.TakenError
	return fault{reason: "ChildNameTaken"}, errors.As(err, &e)
}

// staleView holds only where every joined error is stale: a real fault beside it must be heard.
func staleView(err error) (fault, bool) {
	return fault{reason: "Stale", retry: quiet}, allStale(err)
}

func allStale(err error) bool {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, e := range joined.Unwrap() {
			if !allStale(e) {
				return false
			}
		}
		return true
	}
	return errors.Is(err, act.ErrStale)
}

func unwatchable(err error) (fault, bool) {
	var e *cache.UnwatchableError
	return fault{reason: "RelatedUnwatchable"}, errors.As(err, &e)
}

func namespaceGoing(err error) (fault, bool) {
	return fault{reason: "NamespaceTerminating"}, apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

func refusedByServer(err error) (fault, bool) {
	reason := apierrors.ReasonForError(err)
	return fault{reason: "Write" + string(reason)}, reason != ""
}

// verdict is what a sync ends with.
type verdict struct {
	result string
	next   controller.Result
	retry  error
}

// judge turns the sync's error into Event, condition and retry, or notes the good end.
func (r *run) judge(ctx context.Context, err error) verdict {
	probed := r.reach(err)
	if err == nil {
		return r.good()
	}
	f := classify(err)
	log := klog.FromContext(ctx)
	if f.retry == quiet || f.retry == later {
		log.V(1).Info("sync postponed", "reason", f.reason, "cause", err.Error())
	} else {
		r.reportFault(ctx, f, err)
	}
	switch f.retry {
	case later, pause:
		return verdict{result: f.reason, next: controller.Result{RequeueAfter: f.after, Priority: queue.Child}}
	case onChange:
		return verdict{result: f.reason}
	case backoff, quiet:
	}
	if probed > 0 {
		return verdict{result: f.reason, next: controller.Result{RequeueAfter: probed, Priority: queue.Child, Skipped: true}}
	}
	return verdict{result: f.reason, retry: err}
}

// reach reports whether the hook was reached. It returns how long the parent need not be synced
// again because probes are made, 0 if it is left to its own backoff.
func (r *run) reach(err error) time.Duration {
	if r.Reach == nil || !r.asked {
		return 0
	}
	var e *hook.Error
	if errors.As(err, &e) && e.Reason == "" && (e.Kind == hook.Unreachable || e.Kind == hook.TimedOut) {
		name := r.hook
		if strings.HasPrefix(e.Hook, string(hook.Customize)+" ") {
			name = e.Hook
		}
		return r.Reach.Missed(r.item.Key, name)
	}
	if hook.KindOf(err) != hook.Unreachable && !errors.Is(err, context.Canceled) {
		r.Reach.Reached(r.item.Key, r.hook)
	}
	return 0
}

// good ends a sync without a fault.
func (r *run) good() verdict {
	r.state.faultReported = ""
	r.rested()
	if r.tally.gone {
		r.states.forget(r.item.Key)
		return verdict{result: Gone}
	}
	result := "changed"
	if r.tally.writes == 0 {
		result = "converged"
	}
	return verdict{result: result, next: controller.Result{RequeueAfter: r.resync, Priority: queue.Resync}}
}

// faultCondition is the condition that says a fault.
func faultCondition(reason string, err error) hook.Condition {
	return hook.Condition{
		Type:    Synced,
		Status:  metav1.ConditionFalse,
		Reason:  reason,
		Message: report.Shorten("Sync error: "+err.Error(), report.MaxMessage),
	}
}

// volatile are the ports and times in a message. They differ with every try, and are no news.
var volatile = regexp.MustCompile(`:\d+|\b\d+(\.\d+)?(ns|µs|ms|s|m|h)\b`)

// maxLogged bounds an error in the log, in bytes.
const maxLogged = 16 << 10

// loggable is an error whose text is bounded: hooks make parts of it.
func loggable(err error) error {
	if text := err.Error(); len(text) > maxLogged {
		return errors.New(report.Shorten(text, maxLogged))
	}
	return err
}

// faultText is what is remembered of a fault that was said. It is bounded, as are conditions: it is kept
// for each parent.
func faultText(reason string, err error) string {
	return reason + " " + volatile.ReplaceAllString(report.Shorten(err.Error(), report.MaxMessage), "")
}
