package hook

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind tells what went wrong with a question. It decides what the engine does next: when it asks
// again, and which condition and Event it writes.
type ErrorKind string

// The kinds of errors. Their values are reasons of conditions.
const (
	// Unreachable: the hook could not be asked, or the connection was lost before the answer. Only
	// this kind lets a fallback answer.
	Unreachable ErrorKind = "HookUnreachable"
	// TimedOut: there was no answer in time.
	TimedOut ErrorKind = "HookTimeout"
	// Failed: the hook was reached and reported a failure, such as HTTP 500 or codes.Internal.
	Failed ErrorKind = "HookFailed"
	// Invalid: the hook answered, and the answer cannot be used.
	Invalid ErrorKind = "InvalidHookAnswer"
	// Throttled: the hook wants to be asked later, such as HTTP 429 or codes.ResourceExhausted. Set
	// RetryAfter if the hook tells when.
	Throttled ErrorKind = "HookThrottled"
	// Rejected: the hook refuses this parent as it is, such as codes.InvalidArgument or
	// codes.FailedPrecondition. The engine asks again after a change.
	Rejected ErrorKind = "HookRejected"
)

// Known reports whether k is one of the constants of this package.
func (k ErrorKind) Known() bool {
	switch k {
	case Unreachable, TimedOut, Failed, Invalid, Throttled, Rejected:
		return true
	}
	return false
}

// ErrTooManyTriggers is the error of a trigger that comes too soon after others.
var ErrTooManyTriggers = errors.New("there were too many triggers, expected at most 10 a second after a burst of 50")

// Error is the error of a [Hook]. A transport returns one for each question without an answer; the
// engine completes what it leaves out.
type Error struct {
	// Kind is required.
	Kind ErrorKind
	// Hook names the hook by its operation and address: "sync tcp:10.0.0.7:4000".
	Hook string
	// Reason is the hook's own reason, one word in CamelCase. If it is not empty, it is the reason of
	// the condition in place of Kind.
	Reason string
	// RetryAfter is the time after which the hook wants to be asked again, at most [MaxRetryAfter]; 0
	// if it does not say.
	RetryAfter time.Duration
	// Err is the cause. Its message should be one line. If it has a method Code() string, the result
	// is the label code of metrics; it should have few values.
	Err error
}

// Error returns "hook NAME: CAUSE".
func (e *Error) Error() string { return fmt.Sprintf("hook %s: %v", e.Hook, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorKindOf returns the kind of the first [*Error] in err's chain, or "" if there is none.
func ErrorKindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// MaxRetryAfter is the longest delay that a hook can request. It equals the longest backoff.
const MaxRetryAfter = 1000 * time.Second
