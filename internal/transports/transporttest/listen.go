package transporttest

import (
	"net"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
)

// FreeAddress returns an address on loopback without a listener.
func FreeAddress(t *testing.T) string {
	t.Helper()
	l := Listen(t)
	defer l.Close() //nolint:errcheck // nothing was written
	return l.Addr().String()
}

// Listen opens a port on loopback. The caller closes it.
func Listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// ServeGRPC runs a gRPC server until the test ends, and returns its address. Register adds the
// services.
func ServeGRPC(t *testing.T, l net.Listener, register func(*grpc.Server), options ...grpc.ServerOption) string {
	t.Helper()
	server := grpc.NewServer(
		append(options, grpc.StatsHandler(otelgrpc.NewServerHandler()), grpc.MaxSendMsgSize(1<<30))...)
	register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l.Addr().String()
}
