package hook

import (
	"crypto/tls"
	"errors"
	"fmt"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// credentials are TLS where files are named. The files are read once here, so that a wrong name is told at start.
func (o *Options) credentials() (credentials.TransportCredentials, error) {
	switch {
	case o.TLSCert == "" && o.TLSKey == "":
		return insecure.NewCredentials(), nil
	case o.TLSCert == "" || o.TLSKey == "":
		return nil, errors.New("TLS: one of certificate and key is missing; expected both files, or neither")
	}
	load := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		certificate, err := tls.LoadX509KeyPair(o.TLSCert, o.TLSKey)
		if err != nil {
			return nil, fmt.Errorf("TLS certificate %s: %w", o.TLSCert, err)
		}
		return &certificate, nil
	}
	if _, err := load(nil); err != nil {
		return nil, err
	}
	return credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: load}), nil
}
