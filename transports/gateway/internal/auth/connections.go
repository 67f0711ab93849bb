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
	// maxNew limits connections on which no caller was admitted yet, and maxNewPerAddress those
	// from each address. If there are more, the oldest is closed.
	maxNew           = 128
	maxNewPerAddress = 32
	// admissionTimeout limits how long a connection may exist before a caller is admitted.
	admissionTimeout = 20 * time.Second
	// maxConnections limits connections with an admitted caller, and maxConnectionsPerCaller those
	// of each caller.
	maxConnections          = 512
	maxConnectionsPerCaller = 64
)

// connections limits the connections to a server. Only few may be open without an admitted caller;
// among these, a new connection replaces an old one, but never a connection with an admitted
// caller. It is safe for concurrent use.
type connections struct {
	clock clock.WithDelayedExecution

	mu       sync.Mutex     // guards the fields below, and the fields of each connection
	fresh    []*connection  // without an admitted caller, oldest first
	callers  map[string]int // connections of admitted callers
	admitted int            // sum of callers
}

func newConnections(c clock.WithDelayedExecution) *connections {
	return &connections{clock: c, callers: map[string]int{}}
}

// connection is a connection that counts towards the limits.
type connection struct {
	net.Conn
	of      *connections
	address string // in the form of the limits' keys
	caller  string // empty if none is admitted
	expiry  clock.Timer
	closed  bool
}

// remote is a peer's address that also leads to the connection.
type remote struct {
	net.Addr
	connection *connection
}

// RemoteAddr returns the peer's address.
func (c *connection) RemoteAddr() net.Addr { return remote{c.Conn.RemoteAddr(), c} }

// Close closes the connection and frees its place.
func (c *connection) Close() error {
	c.of.forget(c)
	return c.Conn.Close()
}

// listener wraps accepted connections.
type listener struct {
	net.Listener
	of *connections
}

func (c *connections) listen(l net.Listener) net.Listener { return &listener{l, c} }

// Accept does not wait for a free place: it closes an older connection instead.
func (l *listener) Accept() (net.Conn, error) {
	raw, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return l.of.take(raw), nil
}

// take counts a new connection. If there are too many, it closes another one.
func (c *connections) take(raw net.Conn) *connection {
	fresh := &connection{Conn: raw, of: c, address: network(raw.RemoteAddr())}
	c.mu.Lock()
	c.fresh = append(c.fresh, fresh)
	// in a goroutine, because a test's clock calls the function synchronously
	fresh.expiry = c.clock.AfterFunc(admissionTimeout, func() { go c.expire(fresh) })
	evicted := c.victim(fresh.address)
	c.mu.Unlock()
	if evicted != nil {
		_ = evicted.Close() // best effort
	}
	return fresh
}

// victim returns the connection to close: the oldest from an address that exceeds its limit, or
// otherwise the oldest from the address with the most connections. The caller must hold the lock.
func (c *connections) victim(address string) *connection {
	count := map[string]int{}
	most := address
	for _, s := range c.fresh {
		count[s.address]++
		if count[s.address] > count[most] {
			most = s.address
		}
	}
	if count[address] > maxNewPerAddress {
		most = address
	} else if len(c.fresh) <= maxNew {
		return nil
	}
	at := slices.IndexFunc(c.fresh, func(s *connection) bool { return s.address == most })
	return c.fresh[at]
}

// expire closes a connection if no caller was admitted in time.
func (c *connections) expire(late *connection) {
	c.mu.Lock()
	expired := !late.closed && late.caller == ""
	c.mu.Unlock()
	if expired {
		_ = late.Close() // best effort
	}
}

// forget removes a closed connection.
func (c *connections) forget(gone *connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if gone.closed {
		return
	}
	gone.closed = true
	c.leave(gone)
}

// leave stops counting a connection. The caller must hold the lock.
func (c *connections) leave(gone *connection) {
	gone.expiry.Stop()
	if gone.caller == "" {
		c.fresh = slices.DeleteFunc(c.fresh, func(s *connection) bool { return s == gone })
		return
	}
	c.admitted--
	c.callers[gone.caller]--
	if c.callers[gone.caller] == 0 {
		delete(c.callers, gone.caller)
	}
}

// promote counts a call's connection for its caller, who was admitted. A connection belongs to the
// first caller that was admitted on it.
func promote(ctx context.Context, caller *Caller) error {
	from, ok := peer.FromContext(ctx)
	if !ok {
		return nil
	}
	at, ok := from.Addr.(remote)
	if !ok {
		return nil // from another listener
	}
	c := at.connection.of
	c.mu.Lock()
	defer c.mu.Unlock()
	switch conn := at.connection; {
	case conn.closed || conn.caller != "":
		return nil
	case c.admitted >= maxConnections:
		return refusal(codes.ResourceExhausted, "TooManyConnections",
			fmt.Sprintf("the gateway has %d connections, which is all it takes; try again later", maxConnections))
	case c.callers[caller.String()] >= maxConnectionsPerCaller:
		return refusal(codes.ResourceExhausted, "TooManyConnections",
			fmt.Sprintf("%s has %d connections, expected at most %d", caller, maxConnectionsPerCaller, maxConnectionsPerCaller))
	default:
		c.leave(conn)
		conn.caller = caller.String()
		c.callers[conn.caller]++
		c.admitted++
		return nil
	}
}
