package hook

import (
	"context"
	"strings"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	mapv1 "github.com/hookloop/hookloop/gen/hookloop/map/v1"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"google.golang.org/grpc"
)

// unary limits and logs unary calls.
type unary struct {
	calls  callLog
	limit  limiter
	caches *unaryCaches
}

func newUnary(calls callLog) *unary {
	return &unary{calls, make(limiter, session.DefaultCalls), newUnaryCaches(maxUnaryBytes)}
}

// intercept runs a call when the limiter has a free slot. If the function panics, only this call
// fails.
func (u *unary) intercept(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if !isHookMethod(info.FullMethod) {
		return handler(ctx, request)
	}
	defer u.calls.watch(ctx, info.FullMethod, request, context.DeadlineExceeded, context.Canceled)()
	if err := u.limit.take(ctx); err != nil {
		return nil, err
	}
	defer u.limit.free()
	return recoverPanic(ctx, u.calls, info.FullMethod, request, func() (any, error) {
		return u.caches.call(ctx, info.FullMethod, request, func(ctx context.Context) (any, error) {
			return handler(ctx, request)
		})
	})
}

// isHookMethod reports whether a method belongs to one of the hook services.
func isHookMethod(method string) bool {
	service, _, _ := strings.Cut(strings.TrimPrefix(method, "/"), "/")
	return service == compositev1.CompositeHookService_ServiceDesc.ServiceName ||
		service == decoratorv1.DecoratorHookService_ServiceDesc.ServiceName ||
		service == mapv1.MapHookService_ServiceDesc.ServiceName
}
