package verifystream

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// TestDialEndsWithoutAHook dials an address that nothing serves, and one that accepts connections
// and sends nothing.
func TestDialEndsWithoutAHook(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // nothing was written
	for name, address := range map[string]string{"refused": "127.0.0.1:1", "silent": listener.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			o := DialOptions{Options: Options{Wait: 100 * time.Millisecond}, Address: address}
			_, err := Dial(t.Context(), o, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), "hook "+address+": no connection within 100ms") {
				t.Errorf("got %v, want no connection", err)
			}
		})
	}
}
