package hook

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// authenticator rejects calls without the required certificate name or token. It does not check who
// signed the certificate; the TLS handshake has done this already.
type authenticator struct {
	name   string     // required in the caller's certificate; empty accepts any
	tokens *tokenFile // if nil, callers need no token
}

// newAuthenticator returns an authenticator for the options. It reads the token file once, so that
// a wrong file name is reported at the start.
func newAuthenticator(o *ServeOptions, log *slog.Logger) (*authenticator, error) {
	a := &authenticator{name: o.ClientName}
	if o.TokenFile != "" {
		a.tokens = &tokenFile{path: o.TokenFile, log: log}
		if err := a.tokens.read(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// admit rejects a call before its body is read. Health checks are always accepted, because probes
// send no credentials.
func (a *authenticator) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.HasPrefix(info.FullMethodName, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	if err := a.checkName(ctx); err != nil {
		return nil, err
	}
	return ctx, a.checkToken(info.Header)
}

// checkName returns an error if the caller's certificate does not contain the required name.
func (a *authenticator) checkName(ctx context.Context) error {
	if a.name == "" {
		return nil
	}
	from, _ := peer.FromContext(ctx)
	if from == nil {
		return status.Error(codes.Unauthenticated, "the caller is not known")
	}
	secured, _ := from.AuthInfo.(credentials.TLSInfo)
	if len(secured.State.PeerCertificates) == 0 {
		return status.Error(codes.Unauthenticated, "the caller has no certificate")
	}
	names := namesOf(secured.State.PeerCertificates[0])
	if !slices.Contains(names, a.name) {
		return status.Error(codes.Unauthenticated,
			fmt.Sprintf("the caller's certificate is for %q, expected %q", names, a.name))
	}
	return nil
}

// namesOf returns the common name and all alternative names in a certificate.
func namesOf(c *x509.Certificate) []string {
	names := append([]string{c.Subject.CommonName}, c.DNSNames...)
	names = append(names, c.EmailAddresses...)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, ip := range c.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// checkToken returns an error if the call does not send an accepted token.
func (a *authenticator) checkToken(header metadata.MD) error {
	if a.tokens == nil {
		return nil
	}
	sent := header.Get("authorization")
	if len(sent) != 1 {
		return status.Error(codes.Unauthenticated, "the call has no token; expected the header authorization: Bearer TOKEN")
	}
	token, bearer := strings.CutPrefix(sent[0], "Bearer ")
	if !bearer {
		return status.Error(codes.Unauthenticated, "the call has another kind of authorization; expected Bearer")
	}
	return a.tokens.check(token)
}

// warnIfUnauthenticated logs a warning if anyone who can reach the server can also call it.
func (o *ServeOptions) warnIfUnauthenticated(log *slog.Logger, at net.Addr) {
	if at.Network() == "unix" { // the folder's permissions decide who can call
		return
	}
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() || o.ClientCA != "" || o.TokenFile != "" {
		return
	}
	log.Warn("anyone who reaches this address can call the hook; set --client-ca or --token-file", "address", at.String())
}
