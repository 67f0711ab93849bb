package hook

import (
	"context"
	"strings"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"github.com/hookloop/hookloop/internal/transports/session"
	"google.golang.org/grpc"
)

// unary bounds and logs the questions that come as single calls.
type unary struct {
	failures failures
	slots    slots
}

func newUnary(f failures) *unary { return &unary{f, make(slots, session.DefaultCalls)} }

// intercept calls a method of the contract once there is a slot. A panic is an error of its call
// only.
func (u *unary) intercept(
	ctx context.Context,
	request any,
	info *grpc.UnaryServerInfo,
	handler grpc.UnaryHandler,
) (any, error) {
	if !isHookMethod(info.FullMethod) {
		return handler(ctx, request)
	}
	defer u.failures.watch(ctx, info.FullMethod, request, context.DeadlineExceeded, context.Canceled)()
	if err := u.slots.take(ctx); err != nil {
		return nil, err
	}
	defer u.slots.free()
	return guard(ctx, u.failures, info.FullMethod, request, func() (any, error) { return handler(ctx, request) })
}

// isHookMethod reports whether a method belongs to the service of a hook.
func isHookMethod(method string) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service == compositev1.CompositeHookService_ServiceDesc.ServiceName ||
		service == decoratorv1.DecoratorHookService_ServiceDesc.ServiceName
}

// slots bounds the functions that run. A function takes one, and frees it when it has ended, wanted
// or not.
type slots chan struct{}

// take waits for a slot. The error is the status of a call whose context has ended: it does not
// begin.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return statusOf(ctx.Err())
	}
	if err := ctx.Err(); err != nil {
		s.free()
		return statusOf(err)
	}
	return nil
}

func (s slots) free() { <-s }
