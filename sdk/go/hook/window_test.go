package hook_test

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"testing"

	"github.com/hookloop/hookloop/sdk/go/hook"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
)

// recordingConn keeps the bytes that it has received.
type recordingConn struct {
	net.Conn
	mu       *sync.Mutex // guards received
	received *[]byte
}

func (c recordingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.received = append(*c.received, p[:n]...)
	return n, err
}

// http2Frames counts the frames of an HTTP/2 connection by type.
func http2Frames(data []byte) map[byte]int {
	const header = 9
	counts := map[byte]int{}
	for len(data) >= header {
		length := int(binary.BigEndian.Uint32(append([]byte{0}, data[:3]...)))
		counts[data[3]]++
		data = data[min(header+length, len(data)):]
	}
	return counts
}

// TestServeSendsNoPingForAMessage: a ping for each message costs the engine a system call and a
// wake-up for each question.
func TestServeSendsNoPingForAMessage(t *testing.T) {
	var mu sync.Mutex
	var received []byte
	served, _ := start(t, hook.ServeOptions{}, hook.Composite{})
	connection, err := grpc.NewClient(served.Target(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(1<<20), // so that this side sends none
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
			return recordingConn{conn, &mu, &received}, err
		}))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	const calls = 20
	for range calls {
		_, err := healthv1.NewHealthClient(connection).Check(t.Context(), &healthv1.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	const data, ping = 0, 6
	counts := http2Frames(received)
	if counts[data] != calls || counts[ping] > 0 {
		t.Errorf("%d calls: %d DATA and %d PING frames, want %d and none", calls, counts[data], counts[ping], calls)
	}
}
