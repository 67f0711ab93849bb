package auth

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/go-logr/logr"
)

// TLS names the PEM files for the gateway's TLS. Each connection reads them again, so that you can
// rotate them at any time.
type TLS struct {
	// Certificate and Key belong to the gateway.
	Certificate, Key string
	// ClientCA verifies client certificates. If it is empty, the gateway does not ask for any.
	ClientCA string
}

// material builds the TLS configuration from the files. While they are invalid, for example during
// a rotation, it keeps the last valid configuration.
type material struct {
	files TLS
	log   logr.Logger

	mu      sync.Mutex // guards the fields below
	content [3][]byte  // the source of config
	config  *tls.Config
	fault   string // last one logged
}

// newMaterial reads the files once. An error names the invalid file.
func newMaterial(files TLS, log logr.Logger) (*material, error) {
	m := &material{files: files, log: log}
	return m, m.load()
}

// current returns the configuration for a connection.
func (m *material) current(*tls.ClientHelloInfo) (*tls.Config, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fault := ""
	if err := m.load(); err != nil {
		fault = err.Error()
	}
	if fault != "" && fault != m.fault {
		m.log.Error(errors.New(fault), "the gateway goes on with the certificates that it had")
	}
	m.fault = fault
	return m.config, nil
}

// load builds a new configuration if a file has changed.
func (m *material) load() error {
	content, err := m.files.read()
	if err != nil {
		return err
	}
	if m.config != nil && same(content, m.content) {
		return nil
	}
	config, err := m.files.config(content)
	if err != nil {
		return err
	}
	m.content = content
	m.config = config
	return nil
}

func same(a, b [3][]byte) bool {
	return bytes.Equal(a[0], b[0]) && bytes.Equal(a[1], b[1]) && bytes.Equal(a[2], b[2])
}

// read returns what certificate, key and client CA contain.
func (t TLS) read() (content [3][]byte, err error) {
	for i, file := range []struct{ role, name string }{
		{"certificate", t.Certificate}, {"key", t.Key}, {"client CA", t.ClientCA},
	} {
		switch {
		case file.name == "" && file.role == "client CA":
			continue
		case file.name == "":
			return content, fmt.Errorf("gateway: no file for the %s; the gateway speaks TLS only", file.role)
		}
		content[i], err = os.ReadFile(file.name)
		if err != nil {
			return content, fmt.Errorf("gateway: %s: %w", file.role, err)
		}
	}
	return content, nil
}

func (t TLS) config(content [3][]byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(content[0], content[1])
	if err != nil {
		return nil, fmt.Errorf("gateway: certificate %s with key %s: %w", t.Certificate, t.Key, err)
	}
	// A resumed TLS session would not verify the client again. Without tickets, every connection
	// does.
	config := &tls.Config{
		MinVersion:             tls.VersionTLS12,
		Certificates:           []tls.Certificate{pair},
		SessionTicketsDisabled: true,
	}
	if t.ClientCA == "" {
		return config, nil
	}
	config.ClientAuth, config.ClientCAs = tls.VerifyClientCertIfGiven, x509.NewCertPool()
	if !config.ClientCAs.AppendCertsFromPEM(content[2]) {
		return nil, fmt.Errorf("gateway: client CA %s: expected certificates as PEM, found none", t.ClientCA)
	}
	return config, nil
}
