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

// failures logs calls that failed, each once: the method, the parent, and why. It never logs the
// content of objects.
type failures struct{ log *slog.Logger }

// errTookLonger is the cause of a context that ends because the call's timeout is over.
var errTookLonger = errors.New("the function took longer than the call's timeout")

// watch logs a call whose context ends, for one of some causes, before done is called: the function
// may never return.
func (f failures) watch(ctx context.Context, method string, request any, causes ...error) (done func()) {
	began := time.Now()
	stop := context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); slices.ContainsFunc(causes, func(cause error) bool { return errors.Is(why, cause) }) {
			f.log.Warn("hook call given up", "method", method, "parent", parentOf(request), "after",
				time.Since(began), "error", why)
		}
	})
	return func() { stop() }
}

// answers are the codes that are no failure of the function: those of Reject and RetryAfter, and
// that of a function that is not there.
var answers = []codes.Code{codes.FailedPrecondition, codes.ResourceExhausted, codes.Unimplemented}

// failed logs an error of a hook's function. A call that was given up is logged already.
func (f failures) failed(ctx context.Context, method string, request any, err error) {
	if ctx.Err() == nil && !slices.Contains(answers, status.Code(err)) {
		f.log.Error("hook function failed", "method", method, "parent", parentOf(request), "error",
			status.Convert(err).Message())
	}
}

// panicked logs a panic with its stack, and returns the call's error.
func (f failures) panicked(method string, request any, cause any) error {
	f.log.Error(fmt.Sprintf("hook function panicked: %v\n%s", cause, stack()), "method", method, "parent",
		parentOf(request))
	return said{status.Errorf(codes.Internal, "panic: %v", cause)}
}

// stack is the stack of a panic, without the frames that recover it.
func stack() []byte {
	all := debug.Stack()
	if at := bytes.Index(all, []byte("\npanic(")); at >= 0 {
		return all[at+1:]
	}
	return all
}

// guard calls a method, and logs what is wrong with its function.
func guard[T any](
	ctx context.Context,
	f failures,
	method string,
	request any,
	call func() (T, error),
) (response T, err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = f.panicked(method, request, cause)
		} else if err != nil {
			f.failed(ctx, method, request, err)
		}
	}()
	return call()
}

// parentOf names the parent of a request: its kind, namespace and name.
func parentOf(request any) string {
	var parent *hookv1.Object
	switch r := request.(type) {
	case interface{ GetParent() *hookv1.Object }:
		parent = r.GetParent()
	case interface{ GetObject() *hookv1.Object }:
		parent = r.GetObject()
	}
	name := parent.GetName()
	if parent.GetNamespace() != "" {
		name = parent.GetNamespace() + "/" + name
	}
	return parent.GetKind() + " " + name
}
