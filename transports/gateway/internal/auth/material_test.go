package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/hookloop/hookloop/internal/protocol/tlstest"
	"google.golang.org/grpc/codes"
)

// TestRotation replaces the gateway's certificate and its client CA at run time. New connections
// use the new ones.
func TestRotation(t *testing.T) {
	b := &logBook{}
	g := start(t, b.logger())
	before := g.trusted()
	check(t, call(t, before, "Bearer good"), codes.OK)

	old := g.own
	g.own = tlstest.NewAuthority(t)
	certificate, key := g.own.Issue("gateway")
	write(t, g.files.Certificate, certificate) // without its key, as in the middle of a rotation
	for range 3 {
		connection := g.trusted()
		check(t, call(t, connection, "Bearer good"), codes.Unavailable)
	}
	if n := strings.Count(b.text(), "goes on with the certificates that it had"); n != 1 {
		t.Errorf("the fault is logged %d times, want once:\n%s", n, b.text())
	}
	write(t, g.files.Key, key)
	check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
	g.own, old = old, g.own
	check(t, call(t, g.trusted(), "Bearer good"), codes.Unavailable)
	g.own = old
	check(t, call(t, before, "Bearer good"), codes.OK)

	laptop := clientCertificate(t, g.clients, "laptop")
	check(t, call(t, g.trusted(laptop)), codes.OK)
	write(t, g.files.ClientCA, tlstest.NewAuthority(t).PEM)
	check(t, call(t, g.trusted(laptop)), codes.Unavailable)
}

// TestWithoutClientCA requests no client certificate, and ignores one.
func TestWithoutClientCA(t *testing.T) {
	g := start(t, logr.Discard())
	g.files.ClientCA = ""
	server, err := g.guard.NewServer(ServerConfig{TLS: g.files})
	if err != nil {
		t.Fatal(err)
	}
	g.listen(server)
	check(t, call(t, g.trusted(clientCertificate(t, g.clients, "laptop"))), codes.Unauthenticated,
		"neither a token nor a client certificate")
	check(t, call(t, g.trusted(), "Bearer good"), codes.OK)
}

// TestFilesThatCannotBeUsed fails before the gateway listens.
func TestFilesThatCannotBeUsed(t *testing.T) {
	g := start(t, logr.Discard())
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, change := range map[string]func(*ServerConfig){
		"no file for the certificate; the gateway speaks TLS only": func(s *ServerConfig) { s.TLS.Certificate = "" },
		"no file for the key":               func(s *ServerConfig) { s.TLS.Key = "" },
		"key: open /nowhere":                func(s *ServerConfig) { s.TLS.Key = "/nowhere" },
		"certificate " + empty:              func(s *ServerConfig) { s.TLS.Certificate = empty },
		"client CA " + empty + ": expected": func(s *ServerConfig) { s.TLS.ClientCA = empty },
		"client CA: open /nowhere":          func(s *ServerConfig) { s.TLS.ClientCA = "/nowhere" },
		"MessageBytes is -1; expected":      func(s *ServerConfig) { s.MessageBytes = -1 },
	} {
		s := ServerConfig{TLS: g.files}
		change(&s)
		if _, err := g.guard.NewServer(s); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want an error that says %q", err, says)
		}
	}
}
