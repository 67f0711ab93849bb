package hook

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc/filters"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"
)

const (
	// maxMessage limits a request and a response, in bytes. Hookloop uses the same limit.
	maxMessage = 16 << 20
	// minPing is how often a client may ping. gRPC's default, 5 minutes, is too long to notice a
	// dead connection in time.
	minPing = 20 * time.Second
	// handshakeTimeout limits TLS and the start of HTTP/2. maxHeader limits the metadata of a call
	// in bytes, and maxStreams the concurrent calls on a connection. We do not use gRPC's defaults
	// (2 minutes, 16 MiB, unlimited), because callers are not authenticated yet.
	handshakeTimeout = 10 * time.Second
	maxHeader        = 64 << 10
	maxStreams       = 1000
)

// streamWindow and connectionWindow limit how many bytes are received before a call reads them.
// They are fixed, because gRPC would otherwise send a ping with each message to estimate the
// bandwidth.
const (
	streamWindow     = 1 << 20
	connectionWindow = 4 << 20
)

// Serve listens and serves the hooks until ctx is done. Running calls may then finish within the
// grace period.
//
// Each call becomes a span that continues Hookloop's trace. Spans go to OpenTelemetry's global
// provider, and Serve exports the last ones before it returns; see package otlp to set up a
// provider. If a hook's function panics, only that call fails. Serve returns an error if the
// options are invalid or if it cannot listen.
func Serve(ctx context.Context, o ServeOptions, hooks ...Hook) error {
	o.Options = o.withDefaults()
	all, err := newCatalog(hooks)
	if err != nil {
		return err
	}
	provider := startTracing()
	defer flush(o.Log)
	calls := newUnary(callLog{o.Log})
	defer calls.caches.clear()
	server, err := o.newServer(provider, calls)
	if err != nil {
		return err
	}
	listener, err := listen(ctx, cmp.Or(o.Listen, DefaultListen))
	if err != nil {
		return err
	}
	o.warnIfUnauthenticated(o.Log, listener.Addr())
	healthy := health.NewServer()
	streams := o.streams(ctx, provider, all)
	defer streams.sessions.close()
	o.register(server, healthy, streams, all)
	err = o.run(ctx, server, healthy, listener)
	if !streams.running.wait(o.GracePeriod) {
		o.Log.Warn("some functions are still running after the grace period; not waiting for them")
	}
	return err
}

// newServer returns a server that authenticates, traces and limits calls.
func (o *ServeOptions) newServer(provider trace.TracerProvider, calls *unary) (*grpc.Server, error) {
	security, err := o.credentials()
	if err != nil {
		return nil, err
	}
	auth, err := newAuthenticator(o, o.Log)
	if err != nil {
		return nil, err
	}
	// Streams make a span for each of their calls.
	traced := filters.Not(filters.Any(
		filters.HealthCheck(), filters.ServiceName(streamv1.HookStreamService_ServiceDesc.ServiceName)))
	return grpc.NewServer(
		grpc.Creds(security), grpc.InTapHandle(auth.admit),
		grpc.StatsHandler(otelgrpc.NewServerHandler(otelgrpc.WithTracerProvider(provider),
			otelgrpc.WithPropagators(propagators), otelgrpc.WithFilter(traced))),
		grpc.UnaryInterceptor(calls.intercept),
		grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage),
		grpc.StaticStreamWindowSize(streamWindow), grpc.StaticConnWindowSize(connectionWindow),
		grpc.ConnectionTimeout(handshakeTimeout), grpc.MaxHeaderListSize(maxHeader), grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
	), nil
}

// register adds all services to the server.
func (o *ServeOptions) register(server *grpc.Server, healthy *health.Server, streams *streams, hooks *catalog) {
	healthv1.RegisterHealthServer(server, healthy)
	for _, service := range hooks.register(server) {
		healthy.SetServingStatus(service, healthv1.HealthCheckResponse_SERVING)
	}
	streamv1.RegisterHookStreamServiceServer(server, streams)
	healthy.SetServingStatus(streamv1.HookStreamService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	if o.Reflection {
		reflection.Register(server)
	}
}

// run serves until ctx is done or the server fails.
func (o *ServeOptions) run(
	ctx context.Context, server *grpc.Server, healthy *health.Server, listener net.Listener,
) error {
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	if o.Listening != nil {
		o.Listening(listener.Addr())
	}
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	healthy.Shutdown() // clients that watch the health service switch to other replicas
	late := time.AfterFunc(o.GracePeriod, server.Stop)
	defer late.Stop()
	server.GracefulStop()
	// A server that is stopped before it has started returns ErrServerStopped.
	if err := <-served; !errors.Is(err, grpc.ErrServerStopped) {
		return err
	}
	return nil
}
