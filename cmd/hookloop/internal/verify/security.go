package verify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/hookloop/hookloop/engine/hook"
	"github.com/hookloop/hookloop/transports"
)

// Security holds the certificates and credentials for calls. All fields but Insecure and ServerName
// are names of files.
type Security struct {
	// CA has the certificates to trust instead of the system's.
	CA string
	// Cert and Key are the client's certificate.
	Cert, Key string
	// TokenFile has a bearer token.
	TokenFile string
	// Insecure calls a gRPC hook in plain text.
	Insecure bool
	// ServerName is the name in the hook's certificate, if it is not that of the address.
	ServerName string
}

// everywhere allows a hook at any unix socket, because the caller has named it.
var everywhere = transports.Sockets{"/"}

// anywhere allows sending the credentials to every address, because the caller has named both.
var anywhere = transports.SecretPolicy{Unrestricted: []string{secretNamespace}}

// The Secret as which the engine's clients read the credentials.
const (
	secretNamespace = "verify"
	secretName      = "options"
)

// material is the content of the files.
type material struct {
	Security
	plain     bool
	ca        []byte
	cert, key []byte
	token     string
	tls       *tls.Config
}

// load reads the files.
func (s Security) load() (*material, error) {
	m := &material{Security: s, plain: s.Insecure}
	m.tls = &tls.Config{ServerName: s.ServerName, MinVersion: tls.VersionTLS12}
	if s.Insecure && (s.CA != "" || s.Cert != "" || s.Key != "" || s.TokenFile != "" || s.ServerName != "") {
		return nil, usagef("--insecure: is plain text, which excludes --ca, --cert, --key, --server-name and --token-file")
	}
	if (s.Cert == "") != (s.Key == "") {
		return nil, usagef("--cert: expected both --cert and --key, or neither")
	}
	for _, file := range []struct {
		flag, name string
		into       *[]byte
	}{{"--ca", s.CA, &m.ca}, {"--cert", s.Cert, &m.cert}, {"--key", s.Key, &m.key}} {
		if file.name == "" {
			continue
		}
		data, err := os.ReadFile(file.name)
		if err != nil {
			return nil, usagef("%s: %v", file.flag, err)
		}
		*file.into = data
	}
	if err := m.configure(); err != nil {
		return nil, err
	}
	if s.TokenFile != "" {
		data, err := os.ReadFile(s.TokenFile)
		if err != nil {
			return nil, usagef("--token-file: %v", err)
		}
		m.token = strings.TrimSpace(string(data))
	}
	return m, nil
}

// configure fills in the TLS configuration of this package's own clients.
func (m *material) configure() error {
	if m.ca != nil {
		m.tls.RootCAs = x509.NewCertPool()
		if !m.tls.RootCAs.AppendCertsFromPEM(m.ca) {
			return usagef("--ca: %s has no certificate, expected PEM", m.CA)
		}
	}
	if m.cert != nil {
		pair, err := tls.X509KeyPair(m.cert, m.key)
		if err != nil { // the error could quote a value
			return usagef("--cert: %s and %s are no certificate with its key, expected PEM", m.Cert, m.Key)
		}
		m.tls.Certificates = []tls.Certificate{pair}
	}
	return nil
}

// spec adds the credentials to the spec of the engine's own client.
func (m *material) spec(field map[string]any) map[string]any {
	secret := map[string]any{"namespace": secretNamespace, "name": secretName}
	if m.ca != nil {
		field["caBundle"] = map[string]any{"inline": string(m.ca)}
	}
	if m.cert != nil {
		field["clientTLS"] = map[string]any{"secretRef": secret}
	}
	if m.token != "" {
		field["authorization"] = map[string]any{"secretRef": secret}
	}
	if m.ServerName != "" {
		field["serverName"] = m.ServerName
	}
	return field
}

// lookup returns the credentials as the Secret of the spec.
func (m *material) lookup(_ context.Context, kind, namespace, name string) (*hook.Source, error) {
	if kind != "Secret" || namespace != secretNamespace || name != secretName {
		return nil, fmt.Errorf("%s %s/%s cannot be read without a cluster", kind, namespace, name)
	}
	return &hook.Source{
		Data: map[string][]byte{"tls.crt": m.cert, "tls.key": m.key, "token": []byte(m.token)},
	}, nil
}

// authorization returns the header of this package's own clients; empty for none.
func (m *material) authorization() string {
	if m.token == "" {
		return ""
	}
	return "Bearer " + m.token
}
