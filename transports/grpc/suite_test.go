package grpc

import (
	"encoding/json"
	"fmt"
	"net"
	"testing"

	"github.com/hookloop/hookloop/transports/transporttest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassesTheSuiteOfAllTransports(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open: (&Transport{}).Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			return field(serve(t, func(s *grpc.Server) {
				transporttest.Register(s, behave)
			}), timeout, unaryMode)
		},
		Nowhere: func(t *testing.T) json.RawMessage { return field(transporttest.ClosedAddress(t), "", unaryMode) },
	})
}

// TestStreamsPassTheSuiteOfAllTransports calls the same hooks over streams.
func TestStreamsPassTheSuiteOfAllTransports(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Open: (&Transport{}).Open,
		Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
			return field(serveStream(t, newStreamServer(behave)), timeout, streamMode)
		},
		Nowhere: func(t *testing.T) json.RawMessage { return field(transporttest.ClosedAddress(t), "", streamMode) },
	})
}

func field(target, timeout, mode string) json.RawMessage {
	return fmt.Appendf(nil, `{"target":%q,"timeout":%q,"insecure":true,"mode":%q}`, target, timeout, mode)
}

// serve starts a healthy server on loopback and returns its address.
func serve(t *testing.T, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	return serveWith(t, health.NewServer(), register, options...)
}

func serveWith(t *testing.T, state *health.Server, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	return serveOn(t, transporttest.Listen(t), state, register, options...)
}

func serveOn(
	t *testing.T,
	listener net.Listener,
	state *health.Server,
	register func(*grpc.Server),
	options ...grpc.ServerOption,
) string {
	t.Helper()
	return transporttest.ServeGRPC(t, listener, func(server *grpc.Server) {
		healthv1.RegisterHealthServer(server, state)
		register(server)
	}, options...)
}
