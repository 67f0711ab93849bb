package hook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// credentials returns TLS if the options name files, and plain text otherwise. It reads the files
// once, so that a wrong file name is reported at the start.
func (o *ServeOptions) credentials() (credentials.TransportCredentials, error) {
	switch {
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return nil, errors.New("TLS: one of certificate and key is missing; expected both files, or neither")
	case o.ClientName != "" && o.ClientCA == "":
		return nil, errors.New("client name: without client authorities no caller has a certificate; expected both")
	case o.TLSCert == "" && o.ClientCA != "":
		return nil, errors.New(
			"client authorities: callers have certificates over TLS only; expected a certificate and its key, too")
	case o.TLSCert == "":
		return insecure.NewCredentials(), nil
	}
	if _, err := o.handshake(); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return o.handshake() },
	}), nil
}

// handshake reads the files and returns the TLS configuration for one connection.
func (o *ServeOptions) handshake() (*tls.Config, error) {
	certificate, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
	if err != nil {
		return nil, fmt.Errorf("TLS certificate %s: %w", o.TLSCert, err)
	}
	config := &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"h2"}, Certificates: []tls.Certificate{certificate},
		SessionTicketsDisabled: true, // a resumed session would skip the check against ClientCA
	}
	if o.ClientCA != "" {
		config.ClientCAs, err = readAuthorities(o.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("client authorities: %w", err)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	return config, nil
}

// readAuthorities reads certificates from a PEM file.
func readAuthorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s has no certificate; expected PEM", file)
	}
	return pool, nil
}
