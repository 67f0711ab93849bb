// Package wire counts the bytes between an engine and its hook: a TCP proxy on loopback that
// changes nothing.
//
// It is for benchmarks, for any protocol; encrypted bytes count as they are. A Proxy is safe for
// concurrent use. It is tested with an echo server behind it.
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

// Count is the number of bytes so far: from clients to the target, and back.
type Count struct{ Sent, Received int64 }

// Sub returns the bytes since an earlier count.
func (c Count) Sub(earlier Count) Count {
	return Count{Sent: c.Sent - earlier.Sent, Received: c.Received - earlier.Received}
}

// Proxy forwards TCP connections to a target.
type Proxy struct {
	target         string
	listener       net.Listener
	sent, received atomic.Int64
	passing        sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	open   map[net.Conn]struct{}
	closed bool
}

// Start listens on a free port of loopback and forwards all connections to target, a host:port.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy to %s: %w", target, err)
	}
	p := &Proxy{target: target, listener: listener, open: map[net.Conn]struct{}{}}
	p.passing.Go(p.accept) // clients → the target, until Close
	return p, nil
}

// Address returns the proxy's address, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Count returns the bytes so far.
func (p *Proxy) Count() Count { return Count{Sent: p.sent.Load(), Received: p.received.Load()} }

// Close closes the listener and all connections, and waits until they have ended. A second call
// does nothing.
func (p *Proxy) Close() error {
	err := p.end()
	p.passing.Wait()
	return err
}

// Cut closes all open connections, like a failing network. Later ones are forwarded.
func (p *Proxy) Cut() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	for c := range p.open {
		err = errors.Join(err, c.Close())
		delete(p.open, c) // Close must not close it again
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

// pass serves one connection. If the target refuses, it closes the client's connection.
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

// keep records a connection that Close must close. It returns false after Close.
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
	c.Close() //nolint:errcheck // both sides have sent all, or Close has closed it
}

// copyCounted copies one direction until its end, and forwards the end. An error of either side is
// an end, too: the other side sees it.
func copyCounted(to, from net.Conn, n *atomic.Int64) {
	io.Copy(to, &counted{from, n}) //nolint:errcheck // see above
	if half, ok := to.(*net.TCPConn); ok {
		half.CloseWrite() //nolint:errcheck // it may be closed as a whole
	}
}

// counted counts bytes before it returns them, so that the count contains every observed answer.
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
