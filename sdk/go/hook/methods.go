package hook

import (
	"context"
	"fmt"
	"maps"
	"slices"

	compositev1 "github.com/hookloop/hookloop/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/gen/hookloop/decorator/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// methods maps the full name of each served method to a function that calls the hook. Methods
// without a function are not in the map.
type methods map[string]func(context.Context, proto.Message) (proto.Message, error)

// answering adapts a method of a generated service to the type that methods holds.
func answering[Request, Response proto.Message](
	f func(context.Context, Request) (Response, error),
) func(context.Context, proto.Message) (proto.Message, error) {
	return func(ctx context.Context, m proto.Message) (proto.Message, error) {
		request, ok := m.(Request)
		if !ok {
			return nil, status.Errorf(codes.Internal, "got a request of type %T, expected %T", m, request)
		}
		return f(ctx, request)
	}
}

// methods returns the methods for which the hook has a function.
func (s composite) methods(c Composite) methods {
	m := methods{}
	if c.Sync != nil {
		m[compositev1.CompositeHookService_Sync_FullMethodName] = answering(s.Sync)
	}
	if c.Finalize != nil {
		m[compositev1.CompositeHookService_Finalize_FullMethodName] = answering(s.Finalize)
	}
	if c.Customize != nil {
		m[compositev1.CompositeHookService_Customize_FullMethodName] = answering(s.Customize)
	}
	return m
}

// methods returns the methods for which the hook has a function.
func (s decorator) methods(d Decorator) methods {
	m := methods{}
	if d.Sync != nil {
		m[decoratorv1.DecoratorHookService_Sync_FullMethodName] = answering(s.Sync)
	}
	if d.Finalize != nil {
		m[decoratorv1.DecoratorHookService_Finalize_FullMethodName] = answering(s.Finalize)
	}
	if d.Customize != nil {
		m[decoratorv1.DecoratorHookService_Customize_FullMethodName] = answering(s.Customize)
	}
	return m
}

// names returns the full names in sorted order.
func (m methods) names() []string { return slices.Sorted(maps.Keys(m)) }

// call calls a method. If the function panics, only this call fails.
func (m methods) call(
	ctx context.Context,
	method string,
	request proto.Message,
	calls callLog,
) (proto.Message, error) {
	f := m[method]
	if f == nil {
		return nil, hookError{status.Error(codes.Unimplemented, fmt.Sprintf("this hook does not serve %s", method[1:]))}
	}
	return recoverPanic(ctx, calls, method, request, func() (proto.Message, error) { return f(ctx, request) })
}
