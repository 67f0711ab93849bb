package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"

	hookv1 "github.com/hookloop/hookloop/gen/hookloop/hook/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// callLog logs each failed call once: the method, the parent and the error. It never logs the
// content of objects.
type callLog struct{ log *slog.Logger }

// errTookLonger is the cause of a context that ends at the call's timeout.
var errTookLonger = errors.New("the function took longer than the call's timeout")

// watch logs the call if its context ends for one of the causes before done is called. The function
// may never return.
func (l callLog) watch(ctx context.Context, method string, request any, causes ...error) (done func()) {
	began := time.Now()
	stop := context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(why, cause) }) {
			l.log.Warn("hook call given up", "method", method, "parent", parentOf(request), "after",
				time.Since(began), "error", why)
		}
	})
	return func() { stop() }
}

// expected are the codes of errors that are no failure of the function: those of Reject, RetryAfter
// and of a missing function.
var expected = []codes.Code{codes.FailedPrecondition, codes.ResourceExhausted, codes.Unimplemented}

// failed logs an error of a hook's function, except of a call that watch has logged.
func (l callLog) failed(ctx context.Context, method string, request any, err error) {
	if ctx.Err() == nil && !slices.Contains(expected, status.Code(err)) {
		l.log.Error("hook function failed", "method", method, "parent", parentOf(request), "error",
			status.Convert(err).Message())
	}
}

// panicked logs a panic with its stack, and returns the call's error.
func (l callLog) panicked(method string, request any, cause any) error {
	l.log.Error(fmt.Sprintf("hook function panicked: %v\n%s", cause, stack()), "method", method, "parent",
		parentOf(request))
	return hookError{status.Errorf(codes.Internal, "panic: %v", cause)}
}

// stack returns the stack of a panic, without the frames that recover it.
func stack() []byte {
	all := debug.Stack()
	if at := bytes.Index(all, []byte("\npanic(")); at >= 0 {
		return all[at+1:]
	}
	return all
}

// recoverPanic calls a method, turns a panic of its function into an error, and logs failures. The
// text of the error is sendable.
func recoverPanic[T any](
	ctx context.Context, l callLog, method string, request any, call func() (T, error),
) (response T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = sendable(l.panicked(method, request, cause))
		} else if err != nil {
			err = sendable(err)
			l.failed(ctx, method, request, err)
		}
	}()
	return call()
}

// parentOf returns the kind, namespace and name of a request's parent.
func parentOf(request any) string {
	var parent *hookv1.ObservedObject
	switch r := request.(type) {
	case interface{ GetParent() *hookv1.ObservedObject }:
		parent = r.GetParent()
	case interface{ GetObject() *hookv1.ObservedObject }:
		parent = r.GetObject()
	}
	name := parent.GetName()
	if parent.GetNamespace() != "" {
		name = parent.GetNamespace() + "/" + name
	}
	return parent.GetKind() + " " + name
}
