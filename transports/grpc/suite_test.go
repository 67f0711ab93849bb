package grpc

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"testing"

	streamv1 "github.com/hookloop/hookloop/gen/hookloop/stream/v1"
	"github.com/hookloop/hookloop/transports/internal/endpoint"
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

// TestUnixSocketsPassTheSuiteOfAllTransports calls hooks that listen on unix sockets, in each mode.
// They need no insecure.
func TestUnixSocketsPassTheSuiteOfAllTransports(t *testing.T) {
	sockets := t.TempDir()
	transport := &Transport{Sockets: endpoint.Sockets{sockets}}
	name := func() string { return filepath.Join(sockets, rand.Text()) }
	serveOn := func(t *testing.T, register func(*grpc.Server)) string {
		path := name()
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		transporttest.ServeGRPC(t, listener, func(server *grpc.Server) {
			healthv1.RegisterHealthServer(server, health.NewServer())
			register(server)
		})
		return path
	}
	for mode, register := range map[string]func(*grpc.Server, transporttest.Behavior){
		unaryMode: func(s *grpc.Server, behave transporttest.Behavior) { transporttest.Register(s, behave) },
		streamMode: func(s *grpc.Server, behave transporttest.Behavior) {
			streamv1.RegisterHookStreamServiceServer(s, newStreamServer(behave))
		},
	} {
		socketField := func(path, timeout string) json.RawMessage {
			return fmt.Appendf(nil, `{"target":"unix://%s","timeout":%q,"mode":%q}`, path, timeout, mode)
		}
		t.Run(mode, func(t *testing.T) {
			transporttest.Run(t, transporttest.Harness{
				Open: transport.Open,
				Serve: func(t *testing.T, timeout string, behave transporttest.Behavior) json.RawMessage {
					return socketField(serveOn(t, func(s *grpc.Server) { register(s, behave) }), timeout)
				},
				Nowhere: func(*testing.T) json.RawMessage { return socketField(name(), "") },
			})
		})
	}
}

// TestUnixSocketsExcludeTLS rejects certificates and credentials for a unix socket.
func TestUnixSocketsExcludeTLS(t *testing.T) {
	transport := &Transport{Sockets: endpoint.Sockets{"/run/hooks"}}
	for _, more := range []string{`"serverName":"a"`, `"caBundle":{"inline":"x"}`, `"authorization":{"secretRef":{}}`} {
		_, err := transport.Open(settings(`{"target":"unix:///run/hooks/a.sock",` + more + `}`))
		if err == nil || !strings.Contains(err.Error(), "target: a unix socket is plain text") {
			t.Errorf("%s: got %v, want a refusal", more, err)
		}
	}
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
