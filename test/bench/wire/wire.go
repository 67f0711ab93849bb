// Package wire counts the bytes that travel between an engine and its hook: a TCP proxy on loopback
// that changes nothing.
//
// It is for benchmarks; it knows no protocol, and encrypted bytes count as they are. Its data is
// whatever its two sides send. A Proxy is safe for concurrent use. It is tested with an echoing
// server behind it.
package wire

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Count is what has passed so far, in bytes: from clients to the target, and back.
type Count struct{ Sent, Received int64 }

// Sub is what has passed since an earlier count.
func (c Count) Sub(earlier Count) Count {
	return Count{Sent: c.Sent - earlier.Sent, Received: c.Received - earlier.Received}
}

// Proxy passes TCP connections on to a target.
type Proxy struct {
	target         string
	listener       net.Listener
	sent, received atomic.Int64
	passing        sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

// Start listens on a free port of loopback and passes all connections on to target, a host:port.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, open: map[net.Conn]struct{}{}}
	p.passing.Go(p.accept) // clients → the target, until Close
	return p, nil
}

// Address is where the proxy listens, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Count is what has passed so far.
func (p *Proxy) Count() Count { return Count{Sent: p.sent.Load(), Received: p.received.Load()} }

// Close ends the listener and all connections, and waits until they are gone. A second call does
// nothing.
func (p *Proxy) Close() error {
	err := p.end()
	p.passing.Wait()
	return err
}

// Cut ends all connections of now, as a network that fails does. Later ones are passed on.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for c := range p.open {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (p *Proxy) end() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	err := p.listener.Close()
	for c := range p.open {
		err = errors.Join(err, c.Close())
	}
	return err
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.passing.Go(func() { p.pass(client) })
	}
}

// pass serves one connection. A target that refuses is shown to the client as a connection that
// ends.
func (p *Proxy) pass(client net.Conn) {
	defer p.drop(client)
	if !p.keep(client) {
		return
	}
	target, err := net.DialTimeout("tcp", p.target, 10*time.Second)
	if err != nil {
		return
	}
	defer p.drop(target)
	if !p.keep(target) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() { copyCounted(client, target, &p.received) })
	copyCounted(target, client, &p.sent)
	back.Wait()
}

// keep notes a connection that Close must end; false after Close.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.open[c] = struct{}{}
	}
	return !p.closed
}

func (p *Proxy) drop(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	c.Close() //nolint:errcheck // both sides have said what they had to say, or Close was here before
}

// copyCounted copies one direction until its end, and passes the end on. An error of either side is
// an end, too: the other side sees it.
func copyCounted(to, from net.Conn, n *atomic.Int64) {
	io.Copy(to, &counted{from, n}) //nolint:errcheck // see above
	if half, ok := to.(*net.TCPConn); ok {
		half.CloseWrite() //nolint:errcheck // it may be closed as a whole
	}
}

// counted counts before it hands the bytes on, so that whoever has seen an answer finds it counted.
type counted struct {
	io.Reader
	n *atomic.Int64
}

// Read reads and counts.
func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
