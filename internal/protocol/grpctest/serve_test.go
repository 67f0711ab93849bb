package grpctest_test

import (
	"net"
	"testing"

	"github.com/hookloop/hookloop/internal/protocol/grpctest"
	"google.golang.org/grpc"
)

// late is a server that is stopped before it begins.
type late struct {
	*grpc.Server
	stopped chan struct{}
}

func (l late) Serve(listener net.Listener) error {
	<-l.stopped
	return l.Server.Serve(listener)
}

func (l late) Stop() {
	l.Server.Stop()
	close(l.stopped)
}

// TestStopBeforeTheServerBegins ends a test, the server of which has not begun yet.
func TestStopBeforeTheServerBegins(t *testing.T) {
	grpctest.Serve(t, late{grpc.NewServer(), make(chan struct{})})
}
