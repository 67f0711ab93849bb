package wire

import (
	"io"
	"net"
	"runtime"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo returns a server that sends back twice its input, until the client has sent all.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			text, err := io.ReadAll(c)
			if err == nil {
				_, err = c.Write(append(text, text...))
			}
			if err != nil {
				t.Error(err)
			}
			c.Close() //nolint:errcheck // the test has what it wanted
		}
	}()
	t.Cleanup(func() {
		listener.Close() //nolint:errcheck // it ends Accept
		<-done
	})
	return listener.Addr().String()
}

func start(t *testing.T, target string) (*Proxy, *net.TCPConn) {
	t.Helper()
	p, err := Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	c, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the proxy may have closed it
	return p, c.(*net.TCPConn)
}

func TestCountsBothDirections(t *testing.T) {
	p, c := start(t, echo(t))
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(c)
	if err != nil || string(text) != "hellohello" {
		t.Fatalf("the answer is %q, %v, want hellohello", text, err)
	}
	if got, want := p.Count(), (Count{Sent: 5, Received: 10}); got != want {
		t.Errorf("Count = %+v, want %+v", got, want)
	}
	if got, want := p.Count().Sub(Count{Sent: 2, Received: 3}), (Count{Sent: 3, Received: 7}); got != want {
		t.Errorf("Sub = %+v, want %+v", got, want)
	}
}

func TestATargetThatRefusesEndsTheConnection(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, c := start(t, nobody)
	if text, err := io.ReadAll(c); len(text) > 0 {
		t.Errorf("read %q, %v, want the end of the connection", text, err)
	}
}

func TestCloseEndsConnectionsUnderWay(t *testing.T) {
	p, c := start(t, echo(t))
	if _, err := c.Write([]byte("half a question")); err != nil {
		t.Fatal(err)
	}
	for p.Count().Sent == 0 { // it comes as soon as the proxy has read
		runtime.Gosched()
	}
	p.Close() //nolint:errcheck // the cleanup closes it again
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open after Close")
	}
}

// TestCut closes the open connections, and forwards the next ones.
func TestCut(t *testing.T) {
	p, c := start(t, echo(t))
	if _, err := c.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	for p.Count().Sent < 5 { // then the proxy has the connection
		runtime.Gosched()
	}
	if err := p.Cut(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(c); len(got) > 0 {
		t.Errorf("a connection that is cut gives %q, %v, want nothing", got, err)
	}
	next, err := net.Dial("tcp", p.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close() //nolint:errcheck // everything is read
	if _, err := next.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	if err := next.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(next); err != nil || string(got) != "hellohello" {
		t.Errorf("the next connection gives %q, %v, want hellohello", got, err)
	}
}
