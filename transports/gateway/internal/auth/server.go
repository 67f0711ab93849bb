package auth

import (
	"context"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Server is a gRPC server that authenticates a call before it decodes any message, and limits
// connections. Register and serve services as with *grpc.Server.
type Server struct {
	*grpc.Server
	connections *connections
}

var _ grpc.ServiceRegistrar = (*Server)(nil)

// NewServer returns a Server. An error names the invalid option.
func (g *Guard) NewServer(s ServerConfig) (*Server, error) {
	options, err := g.options(s)
	if err != nil {
		return nil, err
	}
	return &Server{grpc.NewServer(options...), newConnections(g.clock)}, nil
}

// Serve accepts connections until the server is stopped. It returns the same errors as grpc.Server.
func (s *Server) Serve(l net.Listener) error { return s.Server.Serve(s.connections.listen(l)) }

// RegisterService registers a service. Generated handlers decode a unary request before they run
// the interceptors, so RegisterService replaces them by handlers that run the interceptors first.
func (s *Server) RegisterService(desc *grpc.ServiceDesc, impl any) {
	late := *desc
	late.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		late.Methods[i] = grpc.MethodDesc{
			MethodName: m.MethodName,
			Handler:    decodeAfterInterceptors("/"+desc.ServiceName+"/"+m.MethodName, m),
		}
	}
	s.Server.RegisterService(&late, impl)
}

// unaryHandler has the type of grpc.MethodDesc.Handler.
type unaryHandler = func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error)

// decodeAfterInterceptors returns a handler that runs the interceptors before it decodes the
// request. The interceptors get no request.
func decodeAfterInterceptors(method string, m grpc.MethodDesc) unaryHandler {
	return func(
		srv any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
	) (any, error) {
		if interceptor == nil {
			return m.Handler(srv, ctx, decode, nil)
		}
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: method}
		return interceptor(ctx, nil, info, func(ctx context.Context, _ any) (any, error) {
			return m.Handler(srv, ctx, decode, nil)
		})
	}
}

// checkEncoding rejects compressed messages, because a few bytes may decompress to a large message.
// Decompressors are registered for the whole process, so a server cannot omit them.
func checkEncoding(ctx context.Context) error {
	transport, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ RecvCompress() string })
	if !ok {
		return status.Error(codes.Internal, "the encoding of the call is not known")
	}
	name := transport.RecvCompress()
	if name == "" || name == "identity" {
		return nil
	}
	if err := grpc.SetHeader(ctx, metadata.Pairs("grpc-accept-encoding", "identity")); err != nil {
		return err
	}
	return status.Errorf(codes.Unimplemented,
		"grpc-encoding is %q, expected identity: messages are not compressed here", name)
}

// rejectCompressedUnary and rejectCompressedStream reject compressed calls.
func rejectCompressedUnary(ctx context.Context, r any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := checkEncoding(ctx); err != nil {
		return nil, err
	}
	return next(ctx, r)
}

func rejectCompressedStream(srv any, s grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := checkEncoding(s.Context()); err != nil {
		return err
	}
	return next(srv, s)
}
