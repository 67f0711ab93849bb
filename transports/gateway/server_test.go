package gateway

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
)

// opened returns a gateway server and its socket, on a free port.
func opened(t *testing.T) (*Server, net.Listener) {
	t.Helper()
	socket, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &Server{server: grpc.NewServer()}, socket
}

// TestServerThatFails ends the work, with an error that names the flag.
func TestServerThatFails(t *testing.T) {
	d, socket := opened(t)
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	err := d.serve(t.Context(), socket, func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "--gateway-address: serve on 127.0.0.1:") {
		t.Errorf("got %v, want an error that names the flag and the address", err)
	}
}

// TestServerStopsWithTheWork: it closes its socket, and returns the error of the work.
func TestServerStopsWithTheWork(t *testing.T) {
	tired := errors.New("tired")
	for _, want := range []error{nil, tired} {
		d, socket := opened(t)
		if err := d.serve(t.Context(), socket, func(context.Context) error { return want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if _, err := socket.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is still open: %v", err)
		}
	}
}
