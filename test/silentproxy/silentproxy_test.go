package silentproxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/hookloop/hookloop/test/silentproxy"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo serves a copy of its input, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()      //nolint:errcheck // the peer may have gone
				_, _ = io.Copy(c, c) // as above
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// echoes writes a byte and reports whether it comes back.
func echoes(t *testing.T, c net.Conn, within time.Duration) bool {
	t.Helper()
	if _, err := c.Write([]byte("x")); err != nil {
		t.Fatalf("a silent connection is noticed: %v", err)
	}
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a silent connection is noticed: %v", err)
	}
	return err == nil
}

func TestSilence(t *testing.T) {
	p, err := silentproxy.Start(echo(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	const soon, late = 100 * time.Millisecond, 10 * time.Second
	first := dial(t, p.Address())
	if !echoes(t, first, late) {
		t.Error("nothing is carried")
	}
	p.SilenceOpen()
	if echoes(t, first, soon) {
		t.Error("a silent connection carries bytes")
	}
	second := dial(t, p.Address())
	if !echoes(t, second, late) {
		t.Error("a new connection carries nothing")
	}
	p.SilenceAll()
	third := dial(t, p.Address())
	if echoes(t, second, soon) || echoes(t, third, soon) {
		t.Error("a silent connection carries bytes")
	}
	p.Heal()
	if !echoes(t, dial(t, p.Address()), late) {
		t.Error("after it is healed, a new connection carries nothing")
	}
	if echoes(t, third, soon) || p.Connections() != 4 {
		t.Errorf("a silent connection is healed, or %d is not the number of connections", p.Connections())
	}
}
