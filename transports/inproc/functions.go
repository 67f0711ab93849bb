package inproc

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/internal/panics"
	"github.com/hookloop/hookloop/internal/protocol/session"
	"github.com/hookloop/hookloop/transports/codec"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// functions holds the methods that a hook has registered, by their full names.
type functions struct {
	methods map[string]method
	// slots limits how many functions run at a time, as the SDKs do. A function gives its slot back
	// when it returns, even if nobody waits for it any more.
	slots chan struct{}
}

// method is one method of a service, with the service's implementation.
type method struct {
	server  any
	handler grpc.MethodHandler
}

func newFunctions() *functions {
	return &functions{methods: map[string]method{}, slots: make(chan struct{}, session.DefaultCalls)}
}

// RegisterService records the methods of a service.
func (f *functions) RegisterService(d *grpc.ServiceDesc, server any) {
	for _, m := range d.Methods {
		f.methods["/"+d.ServiceName+"/"+m.MethodName] = method{server, m.Handler}
	}
}

// operations returns the operations of a controller kind that the hook implements.
func (f *functions) operations(c hook.ControllerKind) []hook.Op {
	var out []hook.Op
	for _, op := range c.Descriptor().Operations {
		if _, has := f.methods[codec.Method(c, op)]; has {
			out = append(out, op)
		}
	}
	return out
}

// result is the result of a function.
type result struct {
	response any
	err      error
}

// call calls a function and waits until it returns or ctx ends. The error is a gRPC status.
func (f *functions) call(ctx context.Context, name string, request proto.Message) (any, error) {
	m, ok := f.methods[name]
	if !ok {
		return nil, status.Errorf(codes.Unimplemented, "the hook has no method %s", name[1:])
	}
	select {
	case f.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, status.FromContextError(
			fmt.Errorf("%d calls of the hook have not ended: %w", cap(f.slots), ctx.Err())).Err()
	}
	ended := make(chan result, 1)
	go func() {
		r := result{err: status.Error(codes.Internal, "the function ended its goroutine, expected it to return")}
		defer func() {
			<-f.slots
			ended <- r
		}()
		r = m.call(ctx, name, request)
	}()
	select {
	case r := <-ended:
		return r.response, r.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// call passes the request itself to the function. A generated handler would decode it into a new
// message, which stays empty here.
func (m method) call(ctx context.Context, name string, request proto.Message) (r result) {
	defer func() {
		var panicked *panics.Error
		if errors.As(r.err, &panicked) {
			r = result{err: status.Error(codes.Internal, panicked.Error())}
		}
	}()
	defer panics.Recover(ctx, &r.err, "panic in a hook", "method", name)
	direct := func(ctx context.Context, _ any, _ *grpc.UnaryServerInfo, function grpc.UnaryHandler) (any, error) {
		return function(ctx, request)
	}
	response, err := m.handler(m.server, ctx, func(any) error { return nil }, direct)
	return result{response, err}
}
