package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/engine/internal/act"
	"github.com/hookloop/hookloop/engine/internal/observe/shape"
	"github.com/hookloop/hookloop/engine/internal/plan"
	"github.com/hookloop/hookloop/engine/internal/watch/cache"
	"github.com/hookloop/hookloop/engine/internal/watch/view"
	"github.com/hookloop/hookloop/internal/panics"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// reasonStaleView is the reason of a sync that cannot read a view, because the watch of its
// resource has failed for too long.
const reasonStaleView = "StaleView"

// retry is the time at which a sync with a fault runs again.
type retry int

const (
	// backoff runs it after the key's exponential backoff.
	backoff retry = iota
	// quiet is backoff without a report: the retry succeeds with a newer observation.
	quiet
	// later runs it after the time that the hook gave, without a report.
	later
	// onChange runs it when something changes.
	onChange
	// pause runs it after the time of the fault.
	pause
)

// fault is one row of the error table, applied to an error.
type fault struct {
	reason string
	retry  retry
	after  time.Duration
	// known reports that there is an Event of the fault already.
	known bool
}

// rules is the one table from error to reason and retry. The first rule that matches the error
// wins.
var rules = []func(error) (fault, bool){
	fenced,         // another replica may lead and continue
	unknownView,    // the objects of a resource are not known
	shuttingDown,   // the process stops; the next leader continues
	panicked,       // a fault of the engine
	circuitOpen,    // a field was rewritten too often: writes pause
	deletionsHeld,  // the answer would delete more than the controller allows
	badAnswer,      // the answer was rejected as a whole
	badParent,      // the parent must be changed first
	noFinalizer,    // the key of the whole parent adds the finalizer
	hookFault,      // the hook failed or could not be reached
	nameTaken,      // the name of a child belongs to another object
	staleView,      // a newer event is on its way
	unwatchable,    // a related resource cannot be watched
	namespaceGoing, // the namespace terminates, so creates are rejected
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
	return fault{reason: "ShuttingDown", retry: quiet}, errors.Is(err, context.Canceled) && hook.ErrorKindOf(err) == ""
}

func panicked(err error) (fault, bool) {
	var e *panics.Error
	var incomplete *plan.UnknownError
	return fault{reason: "InternalError"}, errors.As(err, &e) || errors.As(err, &incomplete)
}

// unknownView matches the error of a view. The controller retries when a stale view is good again.
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
	var e *plan.DeletionLimitError
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

func noFinalizer(err error) (fault, bool) {
	return fault{reason: "NoFinalizer", retry: quiet}, errors.Is(err, shape.ErrNoFinalizer)
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
		f.retry = later
		f.after = e.RetryAfter
	case e.Kind == hook.Rejected:
		f.retry = onChange
	}
	return f, true
}

func nameTaken(err error) (fault, bool) {
	var e *act.TakenError
	return fault{reason: "ChildNameTaken"}, errors.As(err, &e)
}

// staleView matches only if every joined error is stale: another fault must be reported.
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
