package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/gateway"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// Limits of the gateway's requests to the API server, per second and in a burst. Unauthenticated
// callers, and callers without a right, have limits of their own, so that they cannot use up those
// of the others.
const (
	gatewayQPS   = 50
	gatewayBurst = 100
)

// grpcServer is the part of a gRPC server that runs it.
type grpcServer interface {
	Serve(net.Listener) error
	Stop()
}

// gatewayServer is the gateway's server. The zero value is for a process without a gateway.
type gatewayServer struct {
	*gateway.Gateway
	server grpcServer
	// listen opens the socket.
	listen func(context.Context) (net.Listener, error)
}

// gateway returns the gateway for hooks that dial in, if it is configured. It does not listen yet:
// a replica that waits to lead refuses connections, so that hooks try another one.
func (p *process) gateway(ctx context.Context, streams *stream.Metrics) (gatewayServer, error) {
	if off(p.Gateway.Address) {
		return gatewayServer{}, nil
	}
	guard, err := p.guard()
	if err != nil {
		return gatewayServer{}, err
	}
	server, err := guard.NewServer(auth.ServerSettings{
		TLS:   auth.TLS{Certificate: p.Gateway.TLSCert, Key: p.Gateway.TLSKey, ClientCA: p.Gateway.ClientCA},
		Log:   klog.FromContext(ctx).WithName("gateway"),
		Codec: codec.Codec(stream.Limits()),
	})
	if err != nil {
		return gatewayServer{}, err
	}
	p.cacheEntries.add("token-reviews", guard.CachedTokens)
	p.cacheEntries.add("admitted-callers", guard.CachedAdmissions)
	p.cacheEntries.add("call-limits", guard.CachedLimits)
	g := gatewayServer{
		Gateway: gateway.New(
			gateway.Settings{Guard: guard, Build: p.Version, Clock: clock.RealClock{}, Metrics: streams, Memory: p.budget}),
		server: server,
		listen: p.listenGateway,
	}
	g.Register(server)
	p.cacheEntries.add("intercepted-parents", g.InterceptedParents)
	p.cacheEntries.add("gateway-arrivals", g.CachedArrivals)
	healthy := grpchealth.NewServer()
	healthy.SetServingStatus(streamv1.GatewayService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, healthy)
	if p.Log.Devel {
		reflection.Register(server)
	}
	return g, nil
}

func (p *process) listenGateway(ctx context.Context) (net.Listener, error) {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Gateway.Address)
	if err != nil {
		return nil, fmt.Errorf("--gateway-address: listen on %s: %w", p.Gateway.Address, err)
	}
	klog.FromContext(ctx).Info("listening", "flag", "gateway-address", "address", socket.Addr().String())
	return socket, nil
}

// guard returns the guard of the gateway, with three clients of the API server, each with a limit
// of its own.
func (p *process) guard() (*auth.Guard, error) {
	var clients [3]*kubernetes.Clientset
	for i := range clients {
		config := rest.CopyConfig(p.rest)
		config.QPS, config.Burst, config.RateLimiter = gatewayQPS, gatewayBurst, nil
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("client of the gateway: %w", err)
		}
		clients[i] = client
	}
	return auth.New(auth.Settings{
		Client: clients[0], Known: clients[1], Newcomers: clients[2],
		Audience: p.Gateway.Audience, Clock: clock.RealClock{},
	})
}

// serveWhile serves the gateway while work runs. A gateway that fails ends the work.
func (g gatewayServer) serveWhile(ctx context.Context, work func(context.Context) error) error {
	if g.server == nil {
		return work(ctx)
	}
	socket, err := g.listen(ctx)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// it may be stopped before it begins
		if err := g.server.Serve(socket); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("--gateway-address: serve on %s: %w", socket.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		defer g.server.Stop()
		return work(ctx)
	})
	return group.Wait()
}
