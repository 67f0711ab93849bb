package server

import (
	"context"
	"errors"
	"fmt"
	"net"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/transports/codec"
	"github.com/hookloop/hookloop/internal/transports/gateway"
	"github.com/hookloop/hookloop/internal/transports/gateway/access"
	"github.com/hookloop/hookloop/internal/transports/stream"
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

// What the gateway may ask of the API server in a second, and at once: once about strangers, and
// once about whom it knows, so that strangers use up nobody else's.
const (
	gatewayQPS   = 50
	gatewayBurst = 100
)

// gatewayServer is the part of a gRPC server that runs it.
type gatewayServer interface {
	Serve(net.Listener) error
	Stop()
}

// door is the gateway's server. Its zero value is that of a process without a gateway.
type door struct {
	*gateway.Gateway
	server gatewayServer
	socket net.Listener
}

// door listens where hooks dial in, if they may.
func (p *process) door(ctx context.Context, streams *stream.Metrics) (door, error) {
	if off(p.Gateway.Address) {
		return door{}, nil
	}
	guard, err := p.guard()
	if err != nil {
		return door{}, err
	}
	server, err := guard.NewServer(access.Serving{
		TLS:   access.TLS{Certificate: p.Gateway.TLSCert, Key: p.Gateway.TLSKey, ClientCA: p.Gateway.ClientCA},
		Log:   klog.FromContext(ctx).WithName("gateway"),
		Codec: codec.Codec(stream.Limits()),
	})
	if err != nil {
		return door{}, err
	}
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", p.Gateway.Address)
	if err != nil {
		return door{}, fmt.Errorf("--gateway-address: listen on %s: %w", p.Gateway.Address, err)
	}
	d := door{
		Gateway: gateway.New(
			gateway.Settings{Guard: guard, Build: p.Version, Clock: clock.RealClock{}, Metrics: streams, Memory: p.budget}),
		server: server,
		socket: socket,
	}
	streamv1.RegisterGatewayServiceServer(server, d.Gateway)
	healthy := grpchealth.NewServer()
	healthy.SetServingStatus(streamv1.GatewayService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, healthy)
	if p.Log.Devel {
		reflection.Register(server)
	}
	klog.FromContext(ctx).Info("listening", "flag", "gateway-address", "address", socket.Addr().String())
	return d, nil
}

// guard asks the API server by two clients, each with a limit of its own.
func (p *process) guard() (*access.Guard, error) {
	var clients [2]*kubernetes.Clientset
	for i := range clients {
		config := rest.CopyConfig(p.rest)
		config.QPS, config.Burst, config.RateLimiter = gatewayQPS, gatewayBurst, nil
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("client of the gateway: %w", err)
		}
		clients[i] = client
	}
	return access.New(
		access.Settings{Client: clients[0], Known: clients[1], Audience: p.Gateway.Audience, Clock: clock.RealClock{}})
}

// during lets hooks dial in while work runs. A gateway that fails ends the work.
func (d door) during(ctx context.Context, work func(context.Context) error) error {
	if d.server == nil {
		return work(ctx)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		// it may be stopped before it begins
		if err := d.server.Serve(d.socket); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("--gateway-address: serve on %s: %w", d.socket.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		defer d.server.Stop()
		return work(ctx)
	})
	return group.Wait()
}
