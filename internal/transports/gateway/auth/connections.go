package auth

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"k8s.io/utils/clock"
)

const (
	// maxUnauthenticated bounds the connections on which nobody was authenticated yet, and maxUnauthenticatedPerAddress
	// those of one address. Beyond that, the oldest is closed.
	maxUnauthenticated           = 128
	maxUnauthenticatedPerAddress = 32
	// authTimeout is how long a connection may stay without a caller who is authenticated.
	authTimeout = 20 * time.Second
	// maxConnections bounds the connections of callers who were authenticated, and maxConnectionsPerCaller
	// those of one caller.
	maxConnections          = 512
	maxConnectionsPerCaller = 64
)

// connections are those of one server. Strangers' connections are few, and closed in favor of newer
// ones; they never take the place of a caller who is known. It is safe for concurrent use.
type connections struct {
	clock clock.WithDelayedExecution

	mu              sync.Mutex    // guards the fields below, and the fields of each connection
	unauthenticated []*connection // the oldest first
	callers         map[string]int
	authenticated   int // the sum of callers
}

func newConnections(c clock.WithDelayedExecution) *connections {
	return &connections{clock: c, callers: map[string]int{}}
}

// connection is one of them.
type connection struct {
	net.Conn
	of      *connections
	address string // as limits count it
	caller  string // empty for a stranger's
	expiry  clock.Timer
	closed  bool
}

// remote is a peer's address, by which its connection is found.
type remote struct {
	net.Addr
	connection *connection
}

// RemoteAddr is the peer's address.
func (c *connection) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

// Close closes it, and makes room for another.
func (c *connection) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// listener wraps what is accepted.
type listener struct {
	net.Listener
	of *connections
}

func (c *connections) listen(l net.Listener) net.Listener { return &listener{l, c} }

// Accept never waits for room: it makes some.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.take(raw), nil
}

// take counts a new connection, and closes those that are too many.
func (c *connections) take(raw net.Conn) *connection {
	fresh := &connection{Conn: raw, of: c, address: network(raw.RemoteAddr())}
	c.mu.Lock()
	c.unauthenticated = append(c.unauthenticated, fresh)
	fresh.expiry = c.clock.AfterFunc(authTimeout, func() { go c.expire(fresh) }) // a test's clock waits for it
	evicted := c.victim(fresh.address)
	c.mu.Unlock()
	if evicted != nil {
		_ = evicted.Close() // its peer learns of it or not
	}
	return fresh
}

// victim is the connection that has to go: the oldest of an address that has too many of them, or
// of the one that has most. The caller holds the lock.
func (c *connections) victim(address string) *connection {
	count, most := map[string]int{}, address
	for _, s := range c.unauthenticated {
		if count[s.address]++; count[s.address] > count[most] {
			most = s.address
		}
	}
	if count[address] > maxUnauthenticatedPerAddress {
		most = address
	} else if len(c.unauthenticated) <= maxUnauthenticated {
		return nil
	}
	at := slices.IndexFunc(c.unauthenticated, func(s *connection) bool { return s.address == most })
	return c.unauthenticated[at]
}

// expire closes a connection on which nobody was authenticated in time.
func (c *connections) expire(late *connection) {
	c.mu.Lock()
	expired := !late.closed && late.caller == ""
	c.mu.Unlock()
	if expired {
		_ = late.Close() // its peer learns of it or not
	}
}

// forget takes a connection off the books.
func (c *connections) forget(gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone.closed {
		return
	}
	gone.closed = true
	c.leave(gone)
}

// leave takes a connection out of its class. The caller holds the lock.
func (c *connections) leave(gone *connection) {
	gone.expiry.Stop()
	if gone.caller == "" {
		c.unauthenticated = slices.DeleteFunc(c.unauthenticated, func(s *connection) bool { return s == gone })
		return
	}
	c.authenticated--
	if c.callers[gone.caller]--; c.callers[gone.caller] == 0 {
		delete(c.callers, gone.caller)
	}
}

// authenticated counts the connection of a call for its caller. The first one whose call is let in
// keeps it.
func (c *connections) promote(ctx context.Context, caller *Caller) error {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	at, ok := from.Addr.(remote)
	if !ok {
		return nil // not one of ours
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch conn := at.connection; {
	case conn.closed || conn.caller != "":
		return nil
	case c.authenticated >= maxConnections:
		return refusal(codes.ResourceExhausted, "TooManyConnections",
			fmt.Sprintf("the gateway has %d connections, which is all it takes; try again later", maxConnections))
	case c.callers[caller.String()] >= maxConnectionsPerCaller:
		return refusal(codes.ResourceExhausted, "TooManyConnections",
			fmt.Sprintf("%s has %d connections, expected at most %d", caller, maxConnectionsPerCaller, maxConnectionsPerCaller))
	default:
		c.leave(conn)
		conn.caller = caller.String()
		c.callers[conn.caller]++
		c.authenticated++
		return nil
	}
}
