// Package silentproxy is a TCP proxy that can fall silent without closing, as connections do after
// the loss of a node, a dropped NAT entry or in a stateful firewall. Bytes are accepted and
// dropped, and no side gets an error.
//
// It runs between a client and a server in tests, for any protocol. A Proxy is safe for concurrent
// use; its goroutines end with Close. It is tested with an echo server.
package silentproxy

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy forwards connections to one address.
type Proxy struct {
	listener net.Listener
	target   string
	wait     sync.WaitGroup
	dialled  atomic.Int64

	mu     sync.Mutex // guards the fields below
	pairs  map[*pair]struct{}
	silent bool // new connections are silent from the start
	closed bool
}

// pair is a connection to the proxy and its continuation to the target.
type pair struct {
	near, far net.Conn
	silent    atomic.Bool
}

// Start listens on a free port of the loopback and forwards connections to target.
func Start(target string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, target: target, pairs: map[*pair]struct{}{}}
	p.wait.Go(p.accept)
	return p, nil
}

// Address returns the proxy's address, host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Connections returns the number of connections accepted so far.
func (p *Proxy) Connections() int { return int(p.dialled.Load()) }

// SilenceOpen silences all open connections for good. New ones work.
func (p *Proxy) SilenceOpen() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		c.silent.Store(true)
	}
}

// SilenceAll silences all open connections and all new ones until Heal.
func (p *Proxy) SilenceAll() {
	p.SilenceOpen()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = true
}

// Heal makes new connections work. Silent connections stay silent.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = false
}

// Close closes all connections and waits for the goroutines.
func (p *Proxy) Close() error {
	err := p.listener.Close()
	p.mu.Lock()
	p.closed = true
	for c := range p.pairs {
		c.close()
	}
	p.mu.Unlock()
	p.wait.Wait()
	return err
}

func (p *Proxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return // closed
		}
		p.dialled.Add(1)
		far, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = near.Close() // the client sees that no server listens
			continue
		}
		p.carry(&pair{near: near, far: far})
	}
}

func (p *Proxy) carry(c *pair) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		c.close()
		return
	}
	c.silent.Store(p.silent)
	p.pairs[c] = struct{}{}
	var both sync.WaitGroup
	both.Go(func() { c.copy(c.far, c.near) })
	both.Go(func() { c.copy(c.near, c.far) })
	p.wait.Go(func() {
		both.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.pairs, c)
	})
}

// copy forwards one direction. If the pair is silent, it reads and drops the bytes, so that not
// even a full buffer shows, and it does not forward the end.
func (c *pair) copy(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !c.silent.Load() {
			if _, err := to.Write(buffer[:n]); err != nil {
				c.end(from)
				return
			}
		}
		if err != nil {
			c.end(to)
			return
		}
	}
}

// end closes the other side, unless the pair is silent.
func (c *pair) end(other io.Closer) {
	if !c.silent.Load() {
		_ = other.Close() // it may be closed already
	}
}

func (c *pair) close() {
	_ = errors.Join(c.near.Close(), c.far.Close()) // they may be closed already
}
