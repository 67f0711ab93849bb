package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
)

// Register adds the service to a server that uses codec.Codec. The generated handler would decode a
// Trigger request before we know whether the caller may send it, so Register replaces it.
func (g *Gateway) Register(server grpc.ServiceRegistrar) {
	desc := streamv1.GatewayService_ServiceDesc
	desc.Methods = slices.Clone(desc.Methods)
	for i, m := range desc.Methods {
		if "/"+desc.ServiceName+"/"+m.MethodName == streamv1.GatewayService_Trigger_FullMethodName {
			desc.Methods[i].Handler = triggerHandler
		}
	}
	server.RegisterService(&desc, g)
}

// triggerHandler implements grpc.MethodDesc.Handler. auth.Server has already run the interceptors.
//
//nolint:revive // the order of grpc.MethodDesc.Handler
func triggerHandler(
	impl any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor,
) (any, error) {
	g := impl.(*Gateway) // Register passes nothing else
	handle := func(ctx context.Context, _ any) (any, error) {
		return g.serveTrigger(ctx, func(raw *codec.Raw) error { return receive(raw) })
	}
	if interceptor == nil {
		return handle(ctx, nil)
	}
	info := &grpc.UnaryServerInfo{Server: impl, FullMethod: streamv1.GatewayService_Trigger_FullMethodName}
	return interceptor(ctx, nil, info, handle)
}

// serveTrigger handles a trigger that is sent without a session. It receives the request, checks
// the caller's right, and decodes the request only then.
func (g *Gateway) serveTrigger(
	ctx context.Context, receive func(*codec.Raw) error,
) (*streamv1.TriggerResponse, error) {
	caller, err := g.settings.Guard.Authenticate(ctx)
	if err != nil {
		return nil, err
	}
	raw := &codec.Raw{}
	right, err := g.allow(ctx, caller, func(ctx context.Context) (auth.Right, error) {
		if err := g.await(ctx, "request", func() error { return receive(raw) }); err != nil {
			return auth.Right{}, err
		}
		worker, err := workerOf(raw.Data)
		return serveRight(worker), err
	})
	if err != nil {
		return nil, err
	}
	// We do not wait for memory, because waiting requests need memory too.
	lease, err := g.settings.Memory.Share(budget.Decoding).Lease(ctx, int64(len(raw.Data)), true)
	if err != nil {
		return nil, status.Error(codes.ResourceExhausted, err.Error())
	}
	defer lease.Release()
	r := &streamv1.TriggerRequest{}
	if err := raw.Build(r, lease, stream.MaxMessageMemory); err != nil {
		return nil, requestError(err)
	}
	parents, err := g.trigger(right.Name, r.GetTrigger())
	if err != nil {
		return nil, err
	}
	//nolint:gosec // not negative, and fewer than that
	return &streamv1.TriggerResponse{Parents: uint32(parents)}, nil
}

// requestError returns the status for a request that cannot be decoded.
func requestError(err error) error {
	var exhausted *budget.ExhaustedError
	if errors.As(err, &exhausted) {
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.InvalidArgument, err.Error())
}

// workerOf reads the worker's name from an encoded TriggerRequest.
func workerOf(request []byte) (string, error) {
	const field = 1
	worker := ""
	for len(request) > 0 {
		number, kind, n := protowire.ConsumeField(request)
		if n < 0 {
			return "", requestError(fmt.Errorf("the request is malformed: %w", protowire.ParseError(n)))
		}
		if number == field && kind == protowire.BytesType {
			_, _, tag := protowire.ConsumeTag(request)
			value, _ := protowire.ConsumeBytes(request[tag:n])
			worker = string(value[:min(len(value), maxName+1)]) // enough to see that it is too long
		}
		request = request[n:]
	}
	if worker == "" {
		return "", status.Error(codes.InvalidArgument, "worker is empty, expected a name")
	}
	return worker, nil
}

// trigger triggers the controllers that refer to a worker.
func (g *Gateway) trigger(worker string, t *streamv1.Trigger) (parents int, err error) {
	req, err := stream.ReadTrigger(t)
	if err != nil {
		return 0, err
	}
	running := false
	for _, c := range g.users(worker, controller{t.GetControllerKind(), t.GetControllerName()}) {
		ask := g.triggerOf(c)
		if ask == nil {
			continue
		}
		running = true
		n, err := stream.RequestSync(ask, req)
		if err != nil {
			return parents, err
		}
		parents += n
	}
	if !running {
		return 0, status.Errorf(codes.FailedPrecondition, "no running controller refers to worker %q%s", worker,
			named(t.GetControllerName()))
	}
	return parents, nil
}
