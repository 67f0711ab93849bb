package transporttest

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
)

// Guarded is how a hook is to be served that is reached by TLS and wants to know who asks. What
// counts may change while it is served.
type Guarded struct {
	net.Listener

	mu          sync.Mutex // guards the fields below
	settings    *tls.Config
	admit       func(authorization string) bool
	connections []net.Conn
}

// newGuarded listens on loopback. The server that is given the listener closes it.
func newGuarded(t *testing.T) *Guarded {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &Guarded{Listener: listener}
}

// TLS is the server's side, for the application protocols that are named. What was set last counts
// for new connections.
func (g *Guarded) TLS(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		settings := g.settings.Clone()
		settings.NextProtos = protocols
		return settings, nil
	}}
}

// Admits says of a call's header Authorization whether the hook gives an empty answer; otherwise it
// does not know the caller (status 401, UNAUTHENTICATED).
func (g *Guarded) Admits(authorization string) bool {
	g.mu.Lock()
	admit := g.admit
	g.mu.Unlock()
	return admit(authorization)
}

// Accept is the listener's.
func (g *Guarded) Accept() (net.Conn, error) {
	c, err := g.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.connections = append(g.connections, c)
	return c, nil
}

// restart makes other settings count and loses all connections.
func (g *Guarded) restart(settings *tls.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settings = settings
	for _, c := range g.connections {
		c.Close() //nolint:errcheck // the server may have closed it
	}
	g.connections = nil
}

// only admits who has a token.
func (g *Guarded) only(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit = func(authorization string) bool { return authorization == "Bearer "+token }
}
