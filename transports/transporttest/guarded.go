package transporttest

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
)

// Guarded is the server's side of a hook behind TLS that authenticates its callers. Its settings
// may change while it runs.
type Guarded struct {
	net.Listener

	mu          sync.Mutex // guards the fields below
	settings    *tls.Config
	admit       func(authorization string) bool
	connections []net.Conn
}

// newGuarded listens on loopback. The server with the listener closes it.
func newGuarded(t *testing.T) *Guarded {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &Guarded{Listener: listener}
}

// TLS returns the server's configuration for some application protocols. New connections use the
// latest settings.
func (g *Guarded) TLS(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		g.mu.Lock()
		defer g.mu.Unlock()
		settings := g.settings.Clone()
		settings.NextProtos = protocols
		return settings, nil
	}}
}

// Admits reports whether the hook accepts a call with this header Authorization, with an empty
// answer; otherwise the caller is unknown (status 401, UNAUTHENTICATED).
func (g *Guarded) Admits(authorization string) bool {
	g.mu.Lock()
	admit := g.admit
	g.mu.Unlock()
	return admit(authorization)
}

// Accept implements net.Listener.
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

// restart replaces the settings and closes all connections.
func (g *Guarded) restart(settings *tls.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.settings = settings
	for _, c := range g.connections {
		c.Close() //nolint:errcheck // the server may have closed it
	}
	g.connections = nil
}

// only accepts callers with the token.
func (g *Guarded) only(token string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.admit = func(authorization string) bool { return authorization == "Bearer "+token }
}
