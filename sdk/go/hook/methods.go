package hook

import (
	"context"
	"fmt"
	"maps"
	"slices"

	compositev1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/composite/v1"
	decoratorv1 "github.com/hookloop/hookloop/internal/protocol/gen/hookloop/decorator/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// methods answer questions, by the full names of the contract's methods. Those without a function
// are left out.
type methods map[string]func(context.Context, proto.Message) (proto.Message, error)

// answering makes a method of the contract one of many.
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

func (c Composite) methods() methods {
	m, s := methods{}, composite{hook: c}
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

func (d Decorator) methods() methods {
	m, s := methods{}, decorator{hook: d}
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

// methodsOf gathers the methods of all hooks.
func methodsOf(hooks []Hook) methods {
	all := methods{}
	for _, h := range hooks {
		maps.Copy(all, h.methods())
	}
	return all
}

// names returns the methods' full names, sorted.
func (m methods) names() []string { return slices.Sorted(maps.Keys(m)) }

// call answers one question. A panic is an error of that call only.
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
