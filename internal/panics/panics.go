// Package panics turns a panic into an error, so that a fault in one sync, write or hook does not
// end the process. Defer [Recover] in a function with a named error:
//
//	func sync(ctx context.Context) (err error) {
//		defer panics.Recover(ctx, &err, "a sync panicked")
//		…
//	}
//
// The functions are safe for concurrent use.
package panics

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// Error holds a panic that was recovered.
type Error struct {
	// Cause is the value of the panic as text.
	Cause string
}

// Error implements error.
func (e *Error) Error() string { return "panic: " + e.Cause }

// Recover recovers from a panic of the function that defers it. It logs the message, the keys and
// values and the stack to the logger of ctx, and sets *err to an *[Error]. err may be nil.
func Recover(ctx context.Context, err *error, message string, keysAndValues ...any) {
	cause := recover()
	if cause == nil {
		return
	}
	text := fmt.Sprint(cause)
	klog.FromContext(ctx).Error(nil, message,
		append(keysAndValues, "panic", text, "stack", string(debug.Stack()))...)
	if err != nil {
		*err = &Error{Cause: text}
	}
}
