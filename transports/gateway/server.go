package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/engine/hook"
	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/internal/budget"
	"github.com/hookloop/hookloop/transports/codec"
	"github.com/hookloop/hookloop/transports/gateway/internal/auth"
	"github.com/hookloop/hookloop/transports/internal/stream"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// DefaultAudience is the audience that tokens must be issued for, unless configured otherwise.
const DefaultAudience = auth.DefaultAudience

const (
	gatewayQPS   = 50
	gatewayBurst = 100
)

// ServerConfig configures a [Server].
type ServerConfig struct {
	Address, TLSCert, TLSKey, ClientCA, Audience, Build string
	Rest                                                *rest.Config
	Reflection                                          bool
	Log                                                 logr.Logger
	Metrics                                             *stream.Metrics
	Memory                                              *budget.Budget
	CountCache                                          func(cache string, entries func() int)
}

// Server serves a [Gateway] over gRPC with TLS.
type Server struct {
	*Gateway
	server interface {
		Serve(net.Listener) error
		Stop()
	}
	address string
}

// NewServer returns a server. Call [Server.ServeWhile] to listen.
func NewServer(s ServerConfig) (*Server, error) {
	var clients [3]*kubernetes.Clientset
	for i := range clients {
		config := rest.CopyConfig(s.Rest)
		config.QPS = gatewayQPS
		config.Burst = gatewayBurst
		config.RateLimiter = nil
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, fmt.Errorf("client of the gateway: %w", err)
		}
		clients[i] = client
	}
	guard, err := auth.New(auth.Config{
		Client: clients[0], Known: clients[1], Newcomers: clients[2], Audience: s.Audience, Clock: clock.RealClock{},
	})
	if err != nil {
		return nil, err
	}
	server, err := guard.NewServer(auth.ServerConfig{
		TLS: auth.TLS{Certificate: s.TLSCert, Key: s.TLSKey, ClientCA: s.ClientCA},
		Log: s.Log, Codec: codec.Codec(stream.Limits()),
	})
	if err != nil {
		return nil, err
	}
	g := New(Config{Guard: guard, Build: s.Build, Clock: clock.RealClock{}, Metrics: s.Metrics, Memory: s.Memory})
	for name, count := range map[string]func() int{
		"token-reviews": guard.CachedTokens, "admitted-callers": guard.CachedAdmissions, "call-limits": guard.CachedLimits,
		"intercepted-parents": g.InterceptedParents, "gateway-arrivals": g.CachedArrivals,
	} {
		s.CountCache(name, count)
	}
	g.Register(server)
	healthy := grpchealth.NewServer()
	healthy.SetServingStatus(streamv1.GatewayService_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, healthy)
	if s.Reflection {
		reflection.Register(server)
	}
	return &Server{Gateway: g, server: server, address: s.Address}, nil
}

// ServeWhile listens and serves while work runs, and returns when both have ended. If the gateway
// fails, the context of work ends; when work returns, the gateway stops.
func (s *Server) ServeWhile(ctx context.Context, work func(context.Context) error) error {
	socket, err := new(net.ListenConfig).Listen(ctx, "tcp", s.address)
	if err != nil {
		return fmt.Errorf("--gateway-address: listen on %s: %w", s.address, err)
	}
	klog.FromContext(ctx).Info("listening", "flag", "gateway-address", "address", socket.Addr().String())
	return s.serve(ctx, socket, work)
}

// serve serves on a socket while work runs.
func (s *Server) serve(ctx context.Context, socket net.Listener, work func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		if err := s.server.Serve(socket); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			return fmt.Errorf("--gateway-address: serve on %s: %w", socket.Addr(), err)
		}
		return nil
	})
	group.Go(func() error {
		defer s.server.Stop()
		return work(ctx)
	})
	return group.Wait()
}

// SubscribeLimited does what [Gateway.Subscribe] does, but passes on no more than 10 triggers a
// second.
func (s *Server) SubscribeLimited(kind, name, worker string, f hook.TriggerFunc) (cancel func()) {
	limit := rate.NewLimiter(10, 50)
	return s.Subscribe(kind, name, worker, func(t hook.Trigger) (int, error) {
		if !t.LowPriority && !limit.Allow() {
			return 0, hook.ErrTooManyTriggers
		}
		return f(t)
	})
}
