// Package panics turns panics into errors, so that a fault in one sync, write or hook does not end
// the process.
//
// Callers wrap the error. Functions are safe for concurrent use. It has its own tests, and every
// package that recovers tests it, too.
package panics

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// Error is a panic that was recovered.
type Error struct {
	// Cause is the panic's value as text.
	Cause string
}

// Error implements error.
func (e *Error) Error() string { return "panic: " + e.Cause }

// Recover must be deferred. If the function panics, it logs message, the keys and values, and the
// stack to the logger of ctx, and sets *err to an *Error; a nil err is allowed.
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
