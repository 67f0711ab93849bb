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

// authenticator rejects callers of a server. The TLS handshake has verified the authority of a
// caller's certificate.
type authenticator struct {
	name   string     // in the caller's certificate; empty accepts all
	tokens *tokenFile // nil accepts calls without a token
}

// newAuthenticator reads the file of tokens once, so that a wrong name is an error at the start.
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

// admit rejects a call before its body is read. It accepts all calls of the health service, because
// probes have no credentials.
func (a *authenticator) admit(ctx context.Context, info *tap.Info) (context.Context, error) {
	if strings.HasPrefix(info.FullMethodName, "/"+healthv1.Health_ServiceDesc.ServiceName+"/") {
		return ctx, nil
	}
	if err := a.checkName(ctx); err != nil {
		return nil, err
	}
	return ctx, a.checkToken(info.Header)
}

// checkName returns an error unless the caller's certificate has the required name.
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

// namesOf returns the names in a certificate: the common name and the alternative names.
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

// checkToken returns an error unless the call has one of the tokens.
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

// warnIfUnauthenticated logs a warning if everyone who reaches the server can call it.
func (o *ServeOptions) warnIfUnauthenticated(log *slog.Logger, at net.Addr) {
	if at.Network() == "unix" { // the folder's permissions decide who can call
		return
	}
	if tcp, ok := at.(*net.TCPAddr); ok && tcp.IP.IsLoopback() || o.ClientCA != "" || o.TokenFile != "" {
		return
	}
	log.Warn("anyone who reaches this address can call the hook; set --client-ca or --token-file", "address", at.String())
}
