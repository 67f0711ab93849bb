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

// callLog logs each failed call once, with the method, the parent and the error. It never logs the
// content of objects.
type callLog struct{ log *slog.Logger }

// errTookLonger is set as the context's cause when a call reaches its timeout.
var errTookLonger = errors.New("the function took longer than the call's timeout")

// watch logs the call as soon as its context ends for one of these causes. It does not wait for the
// function, which may never return. Call done when the function has returned.
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

// expected lists the codes that are no failure of the function: they come from Reject, from
// RetryAfter, or from a function that is nil.
var expected = []codes.Code{codes.FailedPrecondition, codes.ResourceExhausted, codes.Unimplemented}

// failed logs an error that a hook's function returned, unless watch has logged the call already.
func (l callLog) failed(ctx context.Context, method string, request any, err error) {
	if ctx.Err() == nil && !slices.Contains(expected, status.Code(err)) {
		l.log.Error("hook function failed", "method", method, "parent", parentOf(request), "error",
			status.Convert(err).Message())
	}
}

// panicked logs a panic with its stack, and returns the error to answer with.
func (l callLog) panicked(method string, request any, cause any) error {
	l.log.Error(fmt.Sprintf("hook function panicked: %v\n%s", cause, stack()), "method", method, "parent",
		parentOf(request))
	return hookError{status.Errorf(codes.Internal, "panic: %v", cause)}
}

// stack returns the stack where the panic began, without the frames that recover it.
func stack() []byte {
	all := debug.Stack()
	if at := bytes.Index(all, []byte("\npanic(")); at >= 0 {
		return all[at+1:]
	}
	return all
}

// recoverPanic runs call, turns a panic into an error, and logs failures. The text of a returned
// error can always be sent.
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

// parentOf returns the kind, namespace and name of the parent that a request is about.
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
