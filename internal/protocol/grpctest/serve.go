// Package grpctest runs gRPC servers for tests, on both sides of the protocol.
package grpctest

import (
	"errors"
	"net"
	"testing"

	"google.golang.org/grpc"
)

// Server is a *grpc.Server, or what wraps one.
type Server interface {
	Serve(listener net.Listener) error
	Stop()
}

// Serve runs server on a free port of loopback until the test ends, and returns its address. A
// server that ends earlier fails the test.
func Serve(t testing.TB, server Server) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ServeOn(t, listener, server)
}

// ServeOn does what Serve does with a listener that is already open, and closes it.
func ServeOn(t testing.TB, listener net.Listener, server Server) string {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		// Serve returns ErrServerStopped if the server stops before it has started.
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("serve: %v", err)
		}
	})
	return listener.Addr().String()
}
