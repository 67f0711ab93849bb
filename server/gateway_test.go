package server

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"google.golang.org/grpc"
)

// opened returns a gateway server and its socket, on a free port.
func opened(t *testing.T) (gatewayServer, net.Listener) {
	t.Helper()
	socket, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return gatewayServer{
		server: grpc.NewServer(),
		listen: func(context.Context) (net.Listener, error) { return socket, nil },
	}, socket
}

// TestDoorThatFails ends the work, with an error that names the flag.
func TestDoorThatFails(t *testing.T) {
	d, socket := opened(t)
	if err := socket.Close(); err != nil {
		t.Fatal(err)
	}
	err := d.serveWhile(t.Context(), func(ctx context.Context) error {
		<-ctx.Done()
		return nil
	})
	if err == nil || !strings.HasPrefix(err.Error(), "--gateway-address: serve on 127.0.0.1:") {
		t.Errorf("got %v, want an error that names the flag and the address", err)
	}
}

// TestDoorClosesWithTheWork and passes its end on.
func TestDoorClosesWithTheWork(t *testing.T) {
	tired := errors.New("tired")
	for _, want := range []error{nil, tired} {
		d, socket := opened(t)
		if err := d.serveWhile(t.Context(), func(context.Context) error { return want }); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
		if _, err := socket.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the socket is still open: %v", err)
		}
		if err := (gatewayServer{}).serveWhile(t.Context(),
			func(context.Context) error { return want }); !errors.Is(err, want) {
			t.Errorf("without a gateway: got %v, want %v", err, want)
		}
	}
}
