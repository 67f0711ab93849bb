package hook

import (
	"errors"
	"fmt"
	"time"
)

// ErrorKind classifies what went wrong with a question. The pipeline's one error table turns it into
// backoff, Event and condition.
type ErrorKind string

// The kinds. Their values serve as reasons of conditions.
const (
	// Unreachable: no connection, no name, TLS failed, connection lost before an answer.
	Unreachable ErrorKind = "HookUnreachable"
	// TimedOut: no answer within the deadline.
	TimedOut ErrorKind = "HookTimeout"
	// Failed: the hook was reached and reported a failure (status 500, codes.Internal).
	Failed ErrorKind = "HookFailed"
	// Invalid: the hook answered with something that is no valid answer.
	Invalid ErrorKind = "InvalidHookAnswer"
	// Throttled: the hook asks to come back later (429, RESOURCE_EXHAUSTED).
	Throttled ErrorKind = "HookThrottled"
	// Rejected: the hook refuses this parent as it is (INVALID_ARGUMENT, FAILED_PRECONDITION);
	// nothing is retried until a change.
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

// ErrTooManyTriggers is the answer to a trigger that comes too soon after others.
var ErrTooManyTriggers = errors.New("there were too many triggers, expected at most 10 a second after a burst of 50")

// Error is the one error type of the port.
type Error struct {
	Kind ErrorKind
	// Hook names the hook: its operation and address.
	Hook string
	// Reason is the hook's own reason, in CamelCase, where it gave one; it replaces Kind as the
	// condition's reason.
	Reason string
	// RetryAfter is the wait that the hook requests; 0 if it requests none.
	RetryAfter time.Duration
	Err        error
}

// Error is "hook <name>: <what happened>".
func (e *Error) Error() string { return fmt.Sprintf("hook %s: %v", e.Hook, e.Err) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrorKindOf returns the kind of the first *Error in err's chain, or "" without one.
func ErrorKindOf(err error) ErrorKind {
	var e *Error
	if errors.As(err, &e) {
		return e.Kind
	}
	return ""
}

// MaxRetryAfter bounds the delay that a hook requests. It equals the longest backoff.
const MaxRetryAfter = 1000 * time.Second
