package transporttest

import (
	"net"
	"strconv"
	"syscall"
	"testing"

	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
)

// ClosedAddress returns an address on loopback that refuses connections. A socket that is bound and
// does not listen keeps the port until the test ends, so that no other process can listen there.
func ClosedAddress(t *testing.T) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Close(socket); err != nil {
			t.Error(err)
		}
	})
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(bound.(*syscall.SockaddrInet4).Port))
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
	return grpctest.ServeOn(t, l, server)
}
